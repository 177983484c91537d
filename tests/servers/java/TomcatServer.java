import java.io.IOException;
import java.util.logging.LogManager;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;

/**
 * Embedded Tomcat for the tests, with the connector that Spring Boot uses: one thread of a pool reads
 * a ClientHello and does the work, another one writes the answer.
 *
 * <p>TomcatServer CERTIFICATE KEY FOLDER prints "port N plain M" and answers every request with
 * "ok", on port M without TLS, but those of "/times" with CPU times of its TLS engines.
 */
public final class TomcatServer {
    private static final byte[] ANSWER = "ok\n".getBytes();

    private TomcatServer() {}

    private static final class Answer extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.setContentLength(ANSWER.length);
            response.getOutputStream().write(ANSWER);
        }
    }

    private static final class Times extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.getWriter().print(TimedEngine.times());
        }
    }

    private static Connector plain() {
        Connector connector = new Connector("org.apache.coyote.http11.Http11NioProtocol");
        connector.setPort(0);
        connector.setProperty("address", "127.0.0.1");
        connector.setProperty("maxKeepAliveRequests", "-1");
        return connector;
    }

    private static Connector tls(String certificate, String key) {
        Connector connector = plain();
        connector.setSecure(true);
        connector.setScheme("https");
        connector.setProperty("SSLEnabled", "true");
        connector.setProperty("sslImplementationName", TimedImplementation.class.getName());
        SSLHostConfig host = new SSLHostConfig();
        SSLHostConfigCertificate own =
                new SSLHostConfigCertificate(host, SSLHostConfigCertificate.Type.UNDEFINED);
        own.setCertificateFile(certificate);
        own.setCertificateKeyFile(key);
        host.addCertificate(own);
        connector.addSslHostConfig(host);
        return connector;
    }

    /** Starts it. */
    public static void main(String[] arguments) throws LifecycleException {
        LogManager.getLogManager().reset();
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(arguments[2]);
        Connector tls = tls(arguments[0], arguments[1]);
        Connector plain = plain();
        tomcat.setConnector(tls);
        tomcat.getService().addConnector(plain);
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "answer", new Answer());
        context.addServletMappingDecoded("/", "answer");
        Tomcat.addServlet(context, "times", new Times());
        context.addServletMappingDecoded("/times", "times");
        tomcat.start();
        System.out.println("port " + tls.getLocalPort() + " plain " + plain.getLocalPort());
        tomcat.getServer().await();
    }
}
