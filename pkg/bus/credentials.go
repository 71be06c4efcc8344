package bus

import (
	"bytes"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
)

// InboxPrefix is the first token of the subjects on which the holder of an nkey
// gets replies. No other user needs the right to read there; the usual _INBOX is
// everybody's.
func InboxPrefix(publicKey string) string { return "_INBOX_" + publicKey }

// credentialOptions returns who connects, by what the file holds: a .creds file is
// recognised by its armour, anything else must be the seed of a user's nkey.
func credentialOptions(file string) ([]nats.Option, error) {
	if file == "" {
		return nil, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read NATS credentials: %w", err)
	}
	if bytes.Contains(content, []byte("BEGIN NATS USER JWT")) {
		return []nats.Option{nats.UserCredentials(file)}, nil
	}
	option, err := nats.NkeyOptionFromSeed(file)
	if err != nil {
		// The content is a secret: it is not in the error.
		return nil, fmt.Errorf("NATS credentials %q are neither a .creds file nor the seed of a user's nkey: %w", file, err)
	}
	var parsed nats.Options
	if err := option(&parsed); err != nil {
		return nil, fmt.Errorf("NATS credentials %q: %w", file, err)
	}
	return []nats.Option{option, nats.CustomInboxPrefix(InboxPrefix(parsed.Nkey))}, nil
}
