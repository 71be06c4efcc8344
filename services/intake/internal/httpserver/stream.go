package httpserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// heartbeat keeps proxies from closing a quiet stream.
const heartbeat = 15 * time.Second

// stream is what is sent of events: those shown, up to the last one, or to what there is when
// ends is closed. known, unless nil, comes first: the bus may have no event of the workload
// any more.
type stream struct {
	deliveries  <-chan bus.Delivery
	ends        <-chan struct{}
	shown, last func(event.Payload) bool
	known       *workload.Record
}

// send writes a stream.
func (s *Server) send(w http.ResponseWriter, r *http.Request, sent stream) error {
	flush := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	begin := func() error { return flush.SetWriteDeadline(time.Now().Add(s.Limits.Write)) }
	if err := begin(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	if known := sent.known; known != nil {
		if err := writeEvent(w, event.Envelope{Type: (&event.WorkloadChanged{}).EventType()}, known); err != nil || over(known) {
			return nil
		}
	}
	var duplicates bus.Duplicates
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	for {
		if err := flush.Flush(); err != nil {
			return nil // the caller has disconnected, or does not read
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-alive.C:
			if begin() != nil {
				return nil
			}
			_, _ = io.WriteString(w, ": alive\n\n")
		case <-sent.ends:
			if len(sent.deliveries) == 0 {
				return nil
			}
		case delivery, open := <-sent.deliveries:
			if !open {
				return nil
			}
			if duplicates.Seen(delivery) {
				continue
			}
			envelope, payload, err := delivery.Event()
			if err != nil || !sent.shown(payload) {
				continue
			}
			if begin() != nil || writeEvent(w, envelope, payload) != nil {
				return nil
			}
			if sent.last(payload) {
				_ = flush.Flush()
				return nil
			}
		}
	}
}

// writeEvent writes one server-sent event. Readers of such streams skip fields that they do
// not know, such as the time.
func writeEvent(w io.Writer, envelope event.Envelope, payload any) error {
	data, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	var text strings.Builder
	if envelope.ID != "" {
		fmt.Fprintf(&text, "id: %s\ntime: %s\n", envelope.ID, envelope.Time.UTC().Format(time.RFC3339Nano))
	}
	fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", envelope.Type, data)
	_, err = io.WriteString(w, text.String())
	return err
}
