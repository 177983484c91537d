import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.BiFunction;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;

/**
 * An engine of the JDK's TLS with the CPU time of the calls to it: the truth about handshakes on a
 * server, whichever threads do them.
 */
final class TimedEngine extends SSLEngine {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Parts of an engine's life. */
    private enum Part { CREATION, HANDSHAKE, AFTER, END }

    private static final AtomicLongArray NANOS = new AtomicLongArray(Part.values().length);
    private static final AtomicLong ENGINES = new AtomicLong();

    private final SSLEngine inner;
    private volatile Part part = Part.CREATION;

    /** Makes an engine, and books what that costs. */
    TimedEngine(Callable<SSLEngine> make) {
        ENGINES.incrementAndGet();
        inner = set(make);
    }

    /** How many engines were made, and the nanoseconds of CPU time in each part, as JSON. */
    static String times() {
        StringBuilder text = new StringBuilder("{\"engines\": " + ENGINES.get());
        for (Part part : Part.values()) {
            text.append(", \"" + part.name().toLowerCase() + "\": " + NANOS.get(part.ordinal()));
        }
        return text.append("}\n").toString();
    }

    private static void book(Part part, long begin) {
        NANOS.addAndGet(part.ordinal(), THREADS.getCurrentThreadCpuTime() - begin);
    }

    private static <T> T set(Callable<T> work) {
        long begin = THREADS.getCurrentThreadCpuTime();
        try {
            return work.call();
        } catch (Exception impossible) {
            throw new IllegalStateException(impossible);
        } finally {
            book(Part.CREATION, begin);
        }
    }

    private interface Move {
        SSLEngineResult run() throws SSLException;
    }

    private SSLEngineResult move(Move work) throws SSLException {
        if (part == Part.CREATION) {
            part = Part.HANDSHAKE;
        }
        long begin = THREADS.getCurrentThreadCpuTime();
        try {
            SSLEngineResult result = work.run();
            if (part == Part.HANDSHAKE
                    && result.getHandshakeStatus() == SSLEngineResult.HandshakeStatus.FINISHED) {
                book(part, begin);
                part = Part.AFTER;
                return result;
            }
            book(part, begin);
            return result;
        } catch (SSLException failure) {
            book(part, begin);
            throw failure;
        }
    }

    @Override
    public SSLEngineResult wrap(ByteBuffer[] from, int offset, int length, ByteBuffer to)
            throws SSLException {
        return move(() -> inner.wrap(from, offset, length, to));
    }

    @Override
    public SSLEngineResult unwrap(ByteBuffer from, ByteBuffer[] to, int offset, int length)
            throws SSLException {
        return move(() -> inner.unwrap(from, to, offset, length));
    }

    @Override
    public Runnable getDelegatedTask() {
        Runnable task = inner.getDelegatedTask();
        if (task == null) {
            return null;
        }
        return () -> {
            long begin = THREADS.getCurrentThreadCpuTime();
            task.run();
            book(part, begin);
        };
    }

    @Override
    public void beginHandshake() throws SSLException {
        part = Part.HANDSHAKE;
        long begin = THREADS.getCurrentThreadCpuTime();
        inner.beginHandshake();
        book(part, begin);
    }

    @Override
    public void closeInbound() throws SSLException {
        part = Part.END;
        inner.closeInbound();
    }

    @Override
    public void closeOutbound() {
        part = Part.END;
        inner.closeOutbound();
    }

    @Override
    public boolean isInboundDone() {
        return inner.isInboundDone();
    }

    @Override
    public boolean isOutboundDone() {
        return inner.isOutboundDone();
    }

    @Override
    public String[] getSupportedCipherSuites() {
        return inner.getSupportedCipherSuites();
    }

    @Override
    public String[] getEnabledCipherSuites() {
        return inner.getEnabledCipherSuites();
    }

    @Override
    public void setEnabledCipherSuites(String[] suites) {
        set(() -> {
            inner.setEnabledCipherSuites(suites);
            return null;
        });
    }

    @Override
    public String[] getSupportedProtocols() {
        return inner.getSupportedProtocols();
    }

    @Override
    public String[] getEnabledProtocols() {
        return inner.getEnabledProtocols();
    }

    @Override
    public void setEnabledProtocols(String[] protocols) {
        set(() -> {
            inner.setEnabledProtocols(protocols);
            return null;
        });
    }

    @Override
    public SSLParameters getSSLParameters() {
        return set(inner::getSSLParameters);
    }

    @Override
    public void setSSLParameters(SSLParameters parameters) {
        set(() -> {
            inner.setSSLParameters(parameters);
            return null;
        });
    }

    @Override
    public SSLSession getSession() {
        return inner.getSession();
    }

    @Override
    public SSLSession getHandshakeSession() {
        return inner.getHandshakeSession();
    }

    @Override
    public SSLEngineResult.HandshakeStatus getHandshakeStatus() {
        return inner.getHandshakeStatus();
    }

    @Override
    public String getApplicationProtocol() {
        return inner.getApplicationProtocol();
    }

    @Override
    public String getHandshakeApplicationProtocol() {
        return inner.getHandshakeApplicationProtocol();
    }

    @Override
    public void setHandshakeApplicationProtocolSelector(
            BiFunction<SSLEngine, List<String>, String> selector) {
        inner.setHandshakeApplicationProtocolSelector(selector);
    }

    @Override
    public BiFunction<SSLEngine, List<String>, String> getHandshakeApplicationProtocolSelector() {
        return inner.getHandshakeApplicationProtocolSelector();
    }

    @Override
    public void setUseClientMode(boolean mode) {
        inner.setUseClientMode(mode);
    }

    @Override
    public boolean getUseClientMode() {
        return inner.getUseClientMode();
    }

    @Override
    public void setNeedClientAuth(boolean need) {
        inner.setNeedClientAuth(need);
    }

    @Override
    public boolean getNeedClientAuth() {
        return inner.getNeedClientAuth();
    }

    @Override
    public void setWantClientAuth(boolean want) {
        inner.setWantClientAuth(want);
    }

    @Override
    public boolean getWantClientAuth() {
        return inner.getWantClientAuth();
    }

    @Override
    public void setEnableSessionCreation(boolean flag) {
        inner.setEnableSessionCreation(flag);
    }

    @Override
    public boolean getEnableSessionCreation() {
        return inner.getEnableSessionCreation();
    }
}
