import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.concurrent.Executors;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/**
 * The JDK's HttpsServer for the tests.
 *
 * <p>HttpsTestServer CERTIFICATE KEY [THREADS] prints "port N" and answers every request, with as
 * many bytes as its path says (/1048576): by default in the thread that accepts, else in a pool of
 * THREADS. The key is an RSA key.
 */
public final class HttpsTestServer {
    private static final char[] PASSWORD = new char[0];
    private static final byte[] ANSWER = "ok\n".getBytes();
    /** Of the size of a record. */
    private static final byte[] PIECE = new byte[16 * 1024];

    private HttpsTestServer() {}

    private static PrivateKey key(Path file) throws Exception {
        String base64 = Files.readString(file).replaceAll("-----[A-Z ]+-----|\\s", "");
        byte[] der = Base64.getDecoder().decode(base64);
        return KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(der));
    }

    private static SSLContext context(Path certificate, Path key) throws Exception {
        Certificate own =
                CertificateFactory.getInstance("X.509")
                        .generateCertificate(new ByteArrayInputStream(Files.readAllBytes(certificate)));
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("own", key(key), PASSWORD, new Certificate[] {own});
        KeyManagerFactory keys = KeyManagerFactory.getInstance("SunX509");
        keys.init(store, PASSWORD);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        return context;
    }

    private static void answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath().substring(1);
        OutputStream body = exchange.getResponseBody();
        if (path.matches("[0-9]+")) {
            int length = Integer.parseInt(path);
            exchange.sendResponseHeaders(200, length);
            for (int left = length; left > 0; left -= PIECE.length) {
                body.write(PIECE, 0, Math.min(left, PIECE.length));
            }
        } else {
            exchange.sendResponseHeaders(200, ANSWER.length);
            body.write(ANSWER);
        }
        exchange.close();
    }

    /** Starts it. */
    public static void main(String[] arguments) throws Exception {
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        HttpsServer server = HttpsServer.create(address, 512);
        SSLContext context = context(Path.of(arguments[0]), Path.of(arguments[1]));
        server.setHttpsConfigurator(new HttpsConfigurator(context));
        server.createContext("/", HttpsTestServer::answer);
        if (arguments.length > 2) {
            server.setExecutor(Executors.newFixedThreadPool(Integer.parseInt(arguments[2])));
        }
        server.start();
        System.out.println("port " + server.getAddress().getPort());
    }
}
