package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// notePrefix begins the names of notes among the metadata of a stream; the server has
// others there.
const notePrefix = "muster.dev/"

// Note returns what was noted under a name, beside the commands; empty for nothing. A
// note is there for as long as the stream of commands is.
func (b *Bus) Note(ctx context.Context, name string) (string, error) {
	stream, err := b.js.Stream(ctx, DispatchStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read note %s: %w", name, err)
	}
	return stream.CachedInfo().Config.Metadata[notePrefix+name], nil
}

// SetNote notes something. Of two who do so at once one may not be heard; who cares
// looks again.
func (b *Bus) SetNote(ctx context.Context, name, value string) error {
	stream, err := b.js.Stream(ctx, DispatchStream)
	if err == nil {
		config := stream.CachedInfo().Config
		config.Metadata = notesOf(config.Metadata)
		config.Metadata[notePrefix+name] = value
		_, err = b.js.UpdateStream(ctx, config)
	}
	if err != nil {
		return fmt.Errorf("note %s: %w", name, err)
	}
	return nil
}

// notesOf returns the notes among the metadata of a stream.
func notesOf(metadata map[string]string) map[string]string {
	notes := map[string]string{}
	maps.Copy(notes, metadata)
	maps.DeleteFunc(notes, func(name, _ string) bool { return !strings.HasPrefix(name, notePrefix) })
	return notes
}
