package app_test

import (
	"context"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/queue-manager/app"
)

// TestDatabaseAwayAtTheStart: queue-manager waits for a database that refuses its
// connections, or breaks them, instead of exiting.
func TestDatabaseAwayAtTheStart(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{
		"it refuses connections":              "127.0.0.1:1",
		"the connection breaks at the start":  breaking(t, 0),
		"the connection breaks after a while": breaking(t, 1),
		"the connection breaks at the schema": breaking(t, 2),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := &app.Config{NATS: bus.Settings{URL: "nats://127.0.0.1:1"}, DatabaseURL: "postgres://login@" + address + "/none?sslmode=disable"}
			if err := config.Validate(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tries := 0
			core, _ := observer.New(zapcore.DebugLevel)
			logger := zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
				if e.Message == "cannot complete a step of the start; retrying" {
					if tries++; tries == 2 {
						cancel()
					}
				}
				return nil
			}))
			if err := app.Run(ctx, config, service.NewRuntime(logger, "queue-manager")); tries != 2 {
				t.Errorf("it ended after %d tries with %v, want it to try until it is stopped", tries, err)
			}
		})
	}
}

// breaking plays a Postgres server that answers the given number of messages of each
// connection, as to the question for its timeline, and then breaks it.
func breaking(t *testing.T, answers int) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			go func() {
				defer func() { _ = conn.Close() }()
				play(pgproto3.NewBackend(conn, conn), answers)
			}()
		}
	}()
	return listener.Addr().String()
}

// play answers a number of questions of a client that has connected: that there is no timeline, in
// the first, and that writes are taken, in the second.
func play(backend *pgproto3.Backend, answers int) {
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for err := backend.Flush(); err == nil && answers > 0; {
		var message pgproto3.FrontendMessage
		message, err = backend.Receive()
		switch message.(type) {
		case *pgproto3.Sync: // the end of a question with parameters
			backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42883", Message: "no such function"})
		case *pgproto3.Query:
			backend.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("transaction_read_only"), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1}}})
			backend.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("off")}})
			backend.Send(&pgproto3.CommandComplete{CommandTag: []byte("SHOW")})
		default:
			continue
		}
		answers--
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		err = backend.Flush()
	}
}
