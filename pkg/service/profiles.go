package service

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// validateProfiles accepts an address of the loopback interface, or none: profiles and
// the command line are for users of the machine only.
func validateProfiles(address string) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("pprof-address: %q: want host:port", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("pprof-address: %q: want an address of the loopback interface, such as 127.0.0.1:6060", address)
	}
	return nil
}

// listenProfiles serves Go's profiles.
func listenProfiles(address string) (*Endpoint, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for profiles on %q: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	return &Endpoint{listener: listener, server: server}, nil
}
