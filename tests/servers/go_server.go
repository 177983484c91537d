// A net/http server for the tests.
//
// go_server CERTIFICATE KEY prints "port N" and answers every request, with as
// many bytes as its path says: /1048576. TLS 1.2 is resumed by ticket, Go has no
// cache of sessions; TLS 1.3 by PSK.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// RSA key transport is no longer among the defaults of newer versions.
var suites = []uint16{
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
}

// In pieces of the size of a record.
var piece = make([]byte, 16*1024)

func answer(w http.ResponseWriter, request *http.Request) {
	length, err := strconv.Atoi(strings.TrimPrefix(request.URL.Path, "/"))
	if err != nil {
		io.WriteString(w, "ok\n")
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(length))
	for left := length; left > 0; left -= len(piece) {
		if _, err := w.Write(piece[:min(left, len(piece))]); err != nil {
			return
		}
	}
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: go_server CERTIFICATE KEY")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	server := &http.Server{
		Handler:   http.HandlerFunc(answer),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, CipherSuites: suites},
		// Failed handshakes are what the tests' clients provoke.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	log.Fatal(server.ServeTLS(listener, os.Args[1], os.Args[2]))
}
