package bus

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// TestFollowersLeaveNothing: a user that follows a stream makes no consumer that stays, so
// that no checker fills the stream of commands with them.
func TestFollowersLeaveNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stream, config, refused string }{
		"ephemeral":            {DispatchStream, `"name":"a","inactive_threshold":300000000000`, ""},
		"durable":              {DispatchStream, `"name":"a","durable_name":"a"`, "config.durable_name"},
		"kept for days":        {DispatchStream, `"name":"a","inactive_threshold":864000000000000`, "config.inactive_threshold 864000000000000"},
		"kept for less":        {DispatchStream, `"name":"a","inactive_threshold":-1`, "config.inactive_threshold -1"},
		"of a number too long": {DispatchStream, `"name":"a","inactive_threshold":1e300`, "config.inactive_threshold 1e300"},
		"durable, of work":     {WorkloadStream, `"name":"a","durable_name":"a"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := (&Bus{}).guarded("CONSUMER.CREATE."+c.stream+".a", []byte(`{"stream_name":"`+c.stream+`","config":{`+c.config+`}}`))
			if (err != nil) != (c.refused != "") || err != nil && !strings.HasPrefix(err.Error(), c.refused) {
				t.Errorf("error %v, want %q", err, c.refused)
			}
		})
	}
}

// Streams that services have made for them begin where those of queue-manager do.
func TestStreamsOfServicesRepeatNoSequence(t *testing.T) {
	t.Parallel()
	for _, stream := range Streams() {
		asked, err := (&Bus{}).guarded(guardStreams+stream, nil)
		if err != nil {
			t.Fatal(err)
		}
		var config jetstream.StreamConfig
		if err := json.Unmarshal(asked, &config); err != nil || (config.FirstSeq > 0) != IsFollowed(stream) {
			t.Errorf("stream %s begins at %d, %v", stream, config.FirstSeq, err)
		}
	}
}

// FuzzGuard: every request that passes is for one of Muster's streams, or for a consumer
// with allowed settings only, each given once.
func FuzzGuard(f *testing.F) {
	f.Add("CONSUMER.CREATE.MUSTER_SUBMIT.intake", []byte(`{"stream_name":"MUSTER_SUBMIT","config":{"name":"intake","ack_policy":"explicit"},"action":"create"}`))
	f.Add("CONSUMER.CREATE.MUSTER_SUBMIT.intake", []byte(`{"stream_name":"MUSTER_SUBMIT","config":{"name":"a","Deliver_Subject":"muster.configure"}}`))
	f.Add("CONSUMER.CREATE.X", []byte(`{"config":{"name":"a","name":"b"},"CONFIG":{"deliver_subject":"muster.configure"}} {}`))
	f.Add("STREAM.CREATE.MUSTER_DEAD", []byte(`{"name":"other","subjects":[">"]}`))
	f.Add("STREAM.CREATE.OTHER", []byte(nil))
	f.Add("STREAM.PURGE.MUSTER_DEAD", []byte(`{}`))
	b := &Bus{}
	f.Fuzz(func(t *testing.T, subject string, data []byte) {
		asked, err := b.guarded(subject, data)
		if err != nil {
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(asked))
		decoder.DisallowUnknownFields()
		if stream, is := strings.CutPrefix(subject, guardStreams); is {
			var config jetstream.StreamConfig
			if err := decoder.Decode(&config); err != nil || config.Name != stream || !slices.ContainsFunc(streams(), func(s jetstream.StreamConfig) bool { return s.Name == stream }) {
				t.Fatalf("asked on %q for %s, %v", subject, asked, err)
			}
			return
		}
		if !strings.HasPrefix(subject, guardCreates) {
			t.Fatalf("asked on %q for %s", subject, asked)
		}
		// As the server reads it: whatever the case of a field.
		var request struct {
			Config jetstream.ConsumerConfig `json:"config"`
		}
		if json.Unmarshal(asked, &request) != nil {
			return // the server refuses it, too
		}
		if request.Config.DeliverSubject != "" || request.Config.DeliverGroup != "" {
			t.Fatalf("%s has the server deliver to %q", asked, request.Config.DeliverSubject)
		}
	})
}
