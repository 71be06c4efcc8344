package httpserver

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TestReadTokens: a file with faults is refused, and all faults are listed.
func TestReadTokens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		parts   []string // of the error; none for a good file
	}{
		"two tokens":    {fmt.Sprintf("- {name: alice, sha256: %s}\n- {name: b@example.org, sha256: %s}\n", hashOf("a"), hashOf("b")), nil},
		"no token":      {"[]", []string{"the file has no token"}},
		"another field": {fmt.Sprintf("- {name: alice, sha256: %s, admin: true}\n", hashOf("a")), []string{"admin"}},
		"a name that is a pattern": {
			fmt.Sprintf("- {name: 'a*', sha256: %s}\n", hashOf("a")), []string{`"a*"`},
		},
		"a name with a slash": {fmt.Sprintf("- {name: a/b, sha256: %s}\n", hashOf("a")), []string{`"a/b"`}},
		"a name of 101":       {fmt.Sprintf("- {name: %s, sha256: %s}\n", strings.Repeat("a", 101), hashOf("a")), []string{"at most 100"}},
		"the token itself":    {"- {name: alice, sha256: let me in}\n", []string{`sha256 of "alice"`, "64 hexadecimal digits"}},
		"a shorter hash":      {"- {name: alice, sha256: abcd}\n", []string{"64 hexadecimal digits"}},
		"one token for two names, and a bad name": {
			fmt.Sprintf("- {name: alice, sha256: %[1]s}\n- {name: '', sha256: %[1]s}\n", hashOf("a")), []string{"duplicate", `[1]: name ""`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadTokens([]byte(c.content))
			if (err == nil) != (len(c.parts) == 0) {
				t.Fatalf("the error is %v", err)
			}
			for _, part := range c.parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error is %q, want %q in it", err, part)
				}
			}
		})
	}
}

// TestIdentify: a verified certificate or a known token names the caller, and nothing else
// does.
func TestIdentify(t *testing.T) {
	t.Parallel()
	tokens := Tokens{{Name: "alice", SHA256: strings.ToUpper(hashOf("a"))}, {Name: "bob", SHA256: hashOf("b")}}
	verified := func(name string) *tls.ConnectionState {
		return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name}}}}}
	}
	for name, c := range map[string]struct {
		authorization string
		tls           *tls.ConnectionState
		want          string // empty when the caller is refused
	}{
		"a token, its hash in capitals":  {"Bearer a", nil, "alice"},
		"the token of another":           {"Bearer b", nil, "bob"},
		"spaces around a token":          {"Bearer  b ", nil, "bob"},
		"an unknown token":               {"Bearer c", nil, ""},
		"a hash for a token":             {"Bearer " + hashOf("b"), nil, ""},
		"an empty token":                 {"Bearer ", nil, ""},
		"a password":                     {"Basic YTph", nil, ""},
		"nothing":                        {"", nil, ""},
		"a certificate":                  {"", verified("carol"), "carol"},
		"a certificate before a token":   {"Bearer a", verified("carol"), "carol"},
		"a certificate with a pattern":   {"Bearer a", verified("c*"), ""},
		"a certificate without a name":   {"Bearer a", verified(""), ""},
		"a certificate without a chain":  {"", &tls.ConnectionState{PeerCertificates: verified("carol").VerifiedChains[0]}, ""},
		"TLS without a certificate":      {"Bearer a", &tls.ConnectionState{}, "alice"},
		"a name in another header alone": {"carol", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.TLS = c.tls
			if c.authorization != "" {
				r.Header.Set("Authorization", c.authorization)
			}
			got, _, err := tokens.Identify(r)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("the caller is %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
