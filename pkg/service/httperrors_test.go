package service_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/service/throttle"
)

// TestFailingConnectionsFillNoLog: clients that fail to connect do not fill the log.
func TestFailingConnectionsFillNoLog(t *testing.T) {
	t.Parallel()
	core, seen := observer.New(zapcore.InfoLevel)
	lines := service.HTTPErrorLog(zap.New(core).WithOptions(throttle.Log()))
	server := &http.Server{ErrorLog: lines, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("on purpose") }), ReadHeaderTimeout: time.Minute}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	began := time.Now()
	for range 500 {
		response, err := http.Get("http://" + listener.Addr().String())
		if err == nil {
			response.Body.Close()
		} else if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	// The log keeps 100 lines without a queue, then one a second.
	if got, most := seen.Len(), 101+int(time.Since(began).Seconds()); got == 0 || got > most {
		t.Errorf("500 connections that fail are %d lines, want some, and at most %d", got, most)
	}
}
