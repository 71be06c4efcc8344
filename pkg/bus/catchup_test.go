package bus

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Values that expire or are purged while a reader reads them are not waited for.
func TestAReaderCatchesUpThoughValuesVanish(t *testing.T) {
	t.Parallel()
	for name, purged := range map[string]string{
		"in the middle": "muster.status.c.m-*", "at the end": "muster.status.c.z-*",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := connectInside(t)
			const each = 500
			for _, part := range []string{"a", "m", "z"} {
				var last Published
				for i := range each {
					var err error
					if last, err = b.PublishEncoded(fmt.Sprintf("muster.status.c.%s-%d", part, i), fmt.Sprint(part, i), []byte(`{}`), 0); err != nil {
						t.Fatal(err)
					}
				}
				if err := last.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			following, err := b.Follow(t.Context(), StatusStream, "muster.status.c.*")
			if err != nil {
				t.Fatal(err)
			}
			stream, err := b.js.Stream(t.Context(), StatusStream)
			if err != nil {
				t.Fatal(err)
			}
			for i := range each { // one token cannot be matched in part
				subject := fmt.Sprintf("%s%d", purged[:len(purged)-1], i)
				if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(subject)); err != nil {
					t.Fatal(err)
				}
			}
			deadline := time.After(30 * time.Second)
			for read := 0; ; {
				select {
				case <-following.C:
					read++
				case <-following.CaughtUp:
					return
				case <-deadline:
					t.Fatalf("after %d values it has not caught up", read)
				}
			}
		})
	}
}
