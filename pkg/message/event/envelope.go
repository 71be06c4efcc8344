package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"muster.dev/muster/pkg/manifest/unescaped"
	"muster.dev/muster/pkg/spec/workload"
)

// MaxSubmission is the largest submission that is accepted, in bytes of the
// whole message. It leaves room below etcd's limit of 1.5 MiB for an object and
// NATS' default of 1 MiB for a message.
const MaxSubmission = 512 << 10

// SpecVersion is the CloudEvents version spoken.
const SpecVersion = "1.0"

// ErrUnknownType is wrapped by Decode for a type string that the registry does
// not have.
var ErrUnknownType = errors.New("unknown event type")

// ErrMalformed is wrapped by Parse and Decode for bytes that are no such event.
var ErrMalformed = errors.New("malformed event")

// Envelope is a CloudEvent 1.0 in its JSON format.
type Envelope struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Subject     string    `json:"subject,omitempty"`
	Time        time.Time `json:"time,omitzero"`
	// Traceparent is CloudEvents' extension for distributed tracing: W3C's
	// traceparent of what led to the event.
	Traceparent     string          `json:"traceparent,omitempty"`
	DataContentType string          `json:"datacontenttype,omitempty"`
	Data            json.RawMessage `json:"data,omitempty"`
	DataBase64      []byte          `json:"data_base64,omitempty"`
}

// QueueManagerSource is the CloudEvents source of queue-manager's events.
const QueueManagerSource = "muster/queue-manager"

// Payload is the data of one kind of event.
type Payload interface {
	// EventType is the CloudEvents type, with the version of the payload.
	EventType() string
	// CloudEventSubject is the CloudEvents subject: the workload or node it is about.
	CloudEventSubject() string
}

// New wraps payload. The id must be unique per source; use a deterministic one
// where the event may be produced twice, NewID otherwise.
func New(id, source string, at time.Time, payload Payload) (Envelope, error) {
	data, err := unescaped.JSON(payload)
	if err != nil {
		return Envelope{}, fmt.Errorf("encode %s event %q: %w", payload.EventType(), id, err)
	}
	return Envelope{
		SpecVersion: SpecVersion, ID: id, Source: source,
		Type: payload.EventType(), Subject: payload.CloudEventSubject(), Time: at.UTC(),
		DataContentType: "application/json", Data: data,
	}, nil
}

// Marshal is New and Encode in one, for those who write many: the data is written
// into the envelope, and not checked and copied once more.
func Marshal(id, source string, at time.Time, traceparent string, payload Payload) ([]byte, error) {
	encoded, err := unescaped.JSON(struct {
		Envelope
		Data Payload `json:"data"` // in the place of the envelope's: the last
	}{
		Envelope{
			SpecVersion: SpecVersion, ID: id, Source: source,
			Type: payload.EventType(), Subject: payload.CloudEventSubject(), Time: at.UTC(),
			Traceparent: traceparent, DataContentType: "application/json",
		},
		payload,
	})
	if err != nil {
		return nil, fmt.Errorf("encode %s event %q: %w", payload.EventType(), id, err)
	}
	return encoded, nil
}

// WithManifest adds the manifest to an encoded GangCommand that has none. It returns what
// Marshal would have made of the command with the manifest. It does not decode the command:
// the data is the last member of the envelope, the manifest the last of the data, and
// other members of a command are never all empty.
func WithManifest(command, manifest []byte) []byte {
	const key = `,"manifest":`
	whole := make([]byte, 0, len(command)+len(key)+len(manifest))
	whole = append(whole, command[:len(command)-len("}}")]...)
	whole = append(whole, key...)
	whole = append(whole, manifest...)
	return append(whole, "}}"...)
}

// NewID returns a fresh event id, ordered by time (UUID version 7).
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// workloadSpace is the namespace of workload ids among UUIDs of version 5.
var workloadSpace = uuid.MustParse("3f1f7c0e-5e0b-5d0c-9a53-6d7573746572")

// WorkloadID derives the workload's id from the submission's source and id,
// which CloudEvents requires to be unique together.
func WorkloadID(source, id string) workload.ID {
	return workload.ID(uuid.NewSHA1(workloadSpace, []byte(source+"\x00"+id)).String())
}

// identitySpace is the namespace of ids of workloads whose submitter counts.
var identitySpace = uuid.MustParse("b0a4b6a5-2d0e-5c9e-8f43-6d7573746572")

// IdentifiedID derives the id of a workload that a user of NATS has submitted under
// its own name. The identity counts, so that no submitter takes an id of another by
// choosing the same source and id. Each part is written with its length: no two
// submissions are written alike.
func IdentifiedID(submitter, source, id string) workload.ID {
	name := fmt.Appendf(nil, "%d %s %d %s %d %s", len(submitter), submitter, len(source), source, len(id), id)
	return workload.ID(uuid.NewSHA1(identitySpace, name).String())
}

// SubmissionID is the id of the workload that a message to a submit subject becomes;
// user is the one that the subject names, or empty.
func SubmissionID(user, source, id string) workload.ID {
	if user == "" {
		return WorkloadID(source, id)
	}
	return IdentifiedID(workload.ByNATS+"/"+user, source, id)
}

// Encode returns the envelope as JSON.
func (e Envelope) Encode() ([]byte, error) {
	encoded, err := unescaped.JSON(e)
	if err != nil {
		return nil, fmt.Errorf("encode event %q: %w", e.ID, err)
	}
	return encoded, nil
}

// TraceparentOf returns the traceparent of an event as Encode wrote it, without
// decoding it.
func TraceparentOf(encoded []byte) string {
	head, _, _ := bytes.Cut(encoded, []byte(`,"data":`))
	_, rest, _ := bytes.Cut(head, []byte(`,"traceparent":"`))
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}

// Parse reads an envelope and checks the attributes that CloudEvents requires.
func Parse(encoded []byte) (Envelope, error) {
	var e Envelope
	if err := json.Unmarshal(encoded, &e); err != nil {
		return Envelope{}, fmt.Errorf("%w: not a CloudEvent in JSON: %w", ErrMalformed, err)
	}
	return e, e.Validate()
}

// Validate checks the attributes that CloudEvents requires.
func (e Envelope) Validate() error {
	for _, attribute := range []struct{ name, value string }{
		{"specversion", e.SpecVersion}, {"id", e.ID}, {"source", e.Source}, {"type", e.Type},
	} {
		if attribute.value == "" {
			return fmt.Errorf("%w: CloudEvents attribute %q is missing or empty", ErrMalformed, attribute.name)
		}
	}
	if e.SpecVersion != SpecVersion {
		return fmt.Errorf("%w: specversion is %q, want %q", ErrMalformed, e.SpecVersion, SpecVersion)
	}
	return nil
}
