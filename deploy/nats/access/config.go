package access

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"muster.dev/muster/pkg/bus"
)

// account is the name of the account with the streams and queue-manager; see Accounts.
const account = "MUSTER"

// WriteConfig writes the accounts as part of nats-server's configuration. keys are the
// users' public nkeys by name; each user must have one.
func WriteConfig(w io.Writer, users []User, keys map[string]string) error {
	var text strings.Builder
	text.WriteString("# Made from package access; not to be edited. Who is not listed here cannot connect.\n")
	fmt.Fprintf(&text, "system_account: %q\naccounts {\n", System)
	for _, a := range Accounts(users) {
		fmt.Fprintf(&text, "  %q {\n", a.Name)
		if a.JetStream {
			text.WriteString("    jetstream: enabled\n")
		}
		if a.Limits != (Limits{}) {
			fmt.Fprintf(&text, "    limits { max_connections: %d, max_subscriptions: %d }\n", a.Limits.Connections, a.Limits.Subscriptions)
		}
		text.WriteString("    users: [\n")
		for _, user := range a.Users {
			key := keys[user.Name]
			if key == "" {
				return fmt.Errorf("user %q has no key", user.Name)
			}
			writeUser(&text, user, key)
		}
		text.WriteString("    ]\n")
		writeExports(&text, a.Exports)
		writeImports(&text, a.Imports)
		text.WriteString("  }\n")
	}
	text.WriteString("}\n")
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write accounts of the NATS server: %w", err)
	}
	return nil
}

// TLS returns the part of nats-server's configuration that encrypts connections and
// requires a client certificate of the authority. The paths are the server's.
func TLS(certificate, key, ca string) string {
	return fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n", certificate, key, ca)
}

func writeExports(text *strings.Builder, exports []Export) {
	if len(exports) == 0 {
		return
	}
	text.WriteString("    exports: [\n")
	for _, e := range exports {
		kind, more := "service", ""
		switch {
		case e.Stream:
			kind = "stream"
		case e.Answers:
			more = ", response_type: stream"
		}
		fmt.Fprintf(text, "      { %s: %q, accounts: %s%s }\n", kind, e.Subject, strings.ReplaceAll(fmt.Sprintf("%q", e.Accounts), "\" \"", "\", \""), more)
	}
	text.WriteString("    ]\n")
}

func writeImports(text *strings.Builder, imports []Import) {
	if len(imports) == 0 {
		return
	}
	text.WriteString("    imports: [\n")
	for _, i := range imports {
		kind, to := "service", ""
		if i.Stream {
			kind = "stream"
		}
		if i.As != "" {
			to = fmt.Sprintf(", to: %q", i.As)
		}
		fmt.Fprintf(text, "      { %s: { account: %q, subject: %q }%s }\n", kind, i.From, i.Subject, to)
	}
	text.WriteString("    ]\n")
}

func writeUser(text *strings.Builder, user User, key string) {
	subscribe := append([]string{bus.InboxPrefix(key) + ".>"}, user.Subscribe...)
	if user.Person {
		subscribe = append(subscribe, "_INBOX.>")
	}
	fmt.Fprintf(text, "      # %s\n      { nkey: %s, permissions: {\n", user.Name, key)
	fmt.Fprintf(text, "          publish: { allow: [%s] }\n", quoted(user.Publish))
	fmt.Fprintf(text, "          subscribe: { allow: [%s] }\n", quoted(subscribe))
	if user.Answers {
		text.WriteString("          allow_responses: true\n")
	}
	text.WriteString("      } }\n")
}

// quoted lists the distinct subjects sorted, one per line, so that configurations can be
// compared.
func quoted(subjects []string) string {
	subjects = slices.Compact(slices.Sorted(slices.Values(subjects)))
	var text strings.Builder
	for _, subject := range subjects {
		fmt.Fprintf(&text, "\n            %q", subject)
	}
	return text.String() + "\n          "
}
