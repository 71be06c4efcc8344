package submission

import (
	"fmt"
	"strings"

	"muster.dev/muster/pkg/kube"
)

// Bounds of a submission's attributes, in bytes.
const (
	longestID        = 256
	longestSource    = 1024
	longestMessageID = 1024
	// longestShown bounds the part of a refused attribute that a rejection repeats.
	longestShown = 256
)

// checkAttributes refuses attributes that cannot be printed, and those too long for a
// database index.
func (s *submission) checkAttributes() error {
	for _, attribute := range []struct {
		what, value string
		most        int
	}{
		{`CloudEvents attribute "id"`, s.envelope.ID, longestID},
		{`CloudEvents attribute "source"`, s.envelope.Source, longestSource},
		{"the header Nats-Msg-Id", s.messageID(), longestMessageID},
	} {
		if len(attribute.value) > attribute.most {
			return fmt.Errorf("%s has %d bytes; want at most %d", attribute.what, len(attribute.value), attribute.most)
		}
		if why := kube.BadText(attribute.value); why != "" {
			return fmt.Errorf("%s is %q; %s", attribute.what, attribute.value, why)
		}
	}
	if s.claimsReservedSource() {
		return fmt.Errorf("CloudEvents attribute \"source\" is %q; want another one: over NATS no source begins with http/ or kubernetes/", s.envelope.Source)
	}
	return nil
}

// shown bounds an attribute for a rejection.
func shown(text string, most int) string {
	if len(text) > most {
		text = text[:min(longestShown, most)]
	}
	return strings.ToValidUTF8(text, "?")
}
