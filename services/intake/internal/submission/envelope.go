package submission

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/tracing"
)

// messageID returns the message's Nats-Msg-Id.
func (s *submission) messageID() string {
	for key, values := range s.message.Headers {
		if strings.EqualFold(key, "Nats-Msg-Id") && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

func (s *submission) size() int {
	size := len(s.message.Data)
	for key, values := range s.message.Headers {
		for _, value := range values {
			size += len(key) + len(value)
		}
	}
	return size
}

// digest identifies the content of a submission.
func (s *submission) digest(manifest json.RawMessage) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\x00%d\x00", s.queue, s.priority)
	if s.class != "" {
		fmt.Fprintf(hash, "%s\x00", s.class) // the class of a label is in the manifest
	}
	hash.Write(manifest)
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// binaryPrefix begins the headers of a CloudEvent in binary mode (CloudEvents
// NATS protocol binding, section 3.1).
const binaryPrefix = "ce-"

// open reads the CloudEvent and derives the workload's id, so that all later faults are
// reported under it. The CloudEvent is in binary mode if there are ce- headers.
func (s *submission) open() error {
	attributes := map[string]string{}
	for key, values := range s.message.Headers {
		if len(values) > 0 {
			attributes[strings.ToLower(key)] = values[0]
		}
	}
	defer func() {
		if parent := attributes[tracing.Header]; parent != "" {
			s.envelope.Traceparent = parent
		}
	}()
	binary := false
	for key := range attributes {
		binary = binary || strings.HasPrefix(key, binaryPrefix)
	}
	if binary {
		return s.openBinary(attributes)
	}
	const want = "publish a CloudEvent of type " + event.SubmitType + " whose data is the manifest, or the manifest with the headers ce-id, ce-source, ce-type and ce-specversion"
	if len(s.message.Data) == 0 {
		return errors.New("the message is empty; " + want)
	}
	var err error
	if s.envelope, err = event.Parse(s.message.Data); err != nil {
		return fmt.Errorf("%w; %s", err, want)
	}
	s.identify()
	var extensions struct {
		Priority      json.RawMessage `json:"priority"`
		PriorityClass *string         `json:"priorityclass"`
	}
	if err := json.Unmarshal(s.message.Data, &extensions); err != nil {
		return fmt.Errorf("%w: %w", event.ErrMalformed, err)
	}
	if extensions.PriorityClass != nil {
		s.class = *extensions.PriorityClass
	}
	return s.setPriority(strings.Trim(string(extensions.Priority), `"`))
}

func (s *submission) openBinary(attributes map[string]string) error {
	s.envelope = event.Envelope{
		SpecVersion: attributes["ce-specversion"], ID: attributes["ce-id"], Source: attributes["ce-source"],
		Type: attributes["ce-type"], Subject: attributes["ce-subject"],
		Traceparent: attributes["ce-traceparent"], DataContentType: attributes["content-type"], DataBase64: s.message.Data,
	}
	if err := s.envelope.Validate(); err != nil {
		return fmt.Errorf("%w; in binary mode it is the header ce-<attribute>", err)
	}
	s.identify()
	s.class = attributes["ce-priorityclass"]
	return s.setPriority(attributes["ce-priority"])
}

// manifestOf returns the bytes of the manifest: the data itself when it is an
// object, its text when it is a string, or the decoded data_base64.
func manifestOf(e event.Envelope) ([]byte, error) {
	switch {
	case len(e.DataBase64) > 0 && len(e.Data) > 0:
		return nil, errors.New("the CloudEvent has both data and data_base64; want one of them")
	case len(e.DataBase64) > 0:
		return e.DataBase64, nil
	case len(e.Data) == 0 || string(e.Data) == "null":
		return nil, errors.New("the CloudEvent has no data; want a manifest")
	case e.Data[0] != '"':
		return e.Data, nil
	}
	var text string
	if err := json.Unmarshal(e.Data, &text); err != nil {
		return nil, fmt.Errorf("data of the CloudEvent: %w", err)
	}
	return []byte(text), nil
}
