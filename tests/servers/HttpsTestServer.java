import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.ByteArrayInputStream;
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
 * <p>HttpsTestServer CERTIFICATE KEY [THREADS] prints "port N" and answers every request: by
 * default in the thread that accepts, else in a pool of THREADS. The key is an RSA key.
 */
public final class HttpsTestServer {
    private static final char[] PASSWORD = new char[0];
    private static final byte[] ANSWER = "ok\n".getBytes();

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

    /** Starts it. */
    public static void main(String[] arguments) throws Exception {
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        HttpsServer server = HttpsServer.create(address, 512);
        SSLContext context = context(Path.of(arguments[0]), Path.of(arguments[1]));
        server.setHttpsConfigurator(new HttpsConfigurator(context));
        server.createContext(
                "/",
                exchange -> {
                    exchange.sendResponseHeaders(200, ANSWER.length);
                    exchange.getResponseBody().write(ANSWER);
                    exchange.close();
                });
        if (arguments.length > 2) {
            server.setExecutor(Executors.newFixedThreadPool(Integer.parseInt(arguments[2])));
        }
        server.start();
        System.out.println("port " + server.getAddress().getPort());
    }
}
