package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/test/suite"
)

// lossTimeout bounds the loss of streams.
const lossTimeout = 20 * time.Second

// loseStreams loses messages, streams or files of a NATS server that runs.
func (in *installation) loseStreams(ctx context.Context, server string, fault suite.Fault) error {
	if fault == suite.StreamsBare {
		directories, err := filepath.Glob(filepath.Join(in.store(server), "jetstream", "*", "streams", "MUSTER_*"))
		if err == nil && len(directories) == 0 {
			err = fmt.Errorf("%s keeps no streams in %s", server, in.dir)
		}
		for _, directory := range directories {
			err = errors.Join(err, os.RemoveAll(directory))
		}
		return err
	}
	b, err := bus.Connect(ctx, bus.Options{
		URL: in.access.NATSURL, Name: "fault", CredentialsFile: in.secrets.Seed(suite.FaultUser), TLS: in.access.TLS, Logger: zap.NewNop(),
	})
	if err != nil {
		return err
	}
	defer b.Close()
	js, err := jetstream.New(b.Conn())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lossTimeout)
	defer cancel()
	if fault == suite.Purged || fault == suite.KeptPurged {
		names := []string{bus.StatusStream, bus.CapacityStream, bus.DispatchStream, bus.EventsStream}
		if fault == suite.KeptPurged {
			names = []string{bus.KeptStream}
		}
		for _, name := range names {
			stream, err := js.Stream(ctx, name)
			if err == nil {
				err = stream.Purge(ctx)
			}
			if err != nil {
				return fmt.Errorf("purge %s: %w", name, err)
			}
		}
		return nil
	}
	for _, name := range bus.Streams() {
		if err := js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("delete %s: %w", name, err)
		}
	}
	return nil
}

func halfClosed(proxies ...*proxy) func(context.Context) error {
	for _, p := range proxies {
		p.halfClose()
	}
	return func(context.Context) error { return nil } // what was open stays as it is
}

// answersLate is how late answers come from a server that is slow.
const answersLate = 500 * time.Millisecond

func late(proxies ...*proxy) func(context.Context) error {
	for _, p := range proxies {
		p.delay(answersLate)
	}
	return func(context.Context) error {
		for _, p := range proxies {
			p.delay(0)
		}
		return nil
	}
}
