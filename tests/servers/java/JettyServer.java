import java.nio.file.Path;
import javax.net.ssl.SSLEngine;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.ssl.SslContextFactory;

/**
 * Embedded Jetty for the tests: whichever thread of its pool is free goes on with a connection.
 *
 * <p>JettyServer STORE prints "port N plain M" and answers every request with "ok", on port M without
 * TLS, but those of "/times" with CPU times of its TLS engines. STORE is a PKCS #12 file without a
 * password.
 */
public final class JettyServer {
    private JettyServer() {}

    private static final class Answer extends Handler.Abstract {
        @Override
        public boolean handle(Request request, Response response, Callback callback) {
            boolean times = request.getHttpURI().getPath().equals("/times");
            String text = times ? TimedEngine.times() : "ok\n";
            response.getHeaders().put(HttpHeader.CONTENT_LENGTH, text.length());
            Content.Sink.write(response, true, text, callback);
            return true;
        }
    }

    private static final class Timed extends SslContextFactory.Server {
        @Override
        public SSLEngine newSSLEngine(String host, int port) {
            return new TimedEngine(() -> super.newSSLEngine(host, port));
        }

        @Override
        public SSLEngine newSSLEngine() {
            return new TimedEngine(super::newSSLEngine);
        }
    }

    private static ServerConnector on(Server server, SslContextFactory.Server tls) {
        HttpConnectionFactory http = new HttpConnectionFactory(new HttpConfiguration());
        ServerConnector connector = new ServerConnector(server, tls, http);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        return connector;
    }

    /** Starts it. */
    public static void main(String[] arguments) throws Exception {
        Timed timed = new Timed();
        timed.setKeyStorePath(Path.of(arguments[0]).toString());
        timed.setKeyStorePassword("");
        Server server = new Server();
        ServerConnector tls = on(server, timed);
        ServerConnector plain = on(server, null);
        server.setHandler(new Answer());
        server.start();
        System.out.println("port " + tls.getLocalPort() + " plain " + plain.getLocalPort());
        server.join();
    }
}
