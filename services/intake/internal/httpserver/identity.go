package httpserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Tokens are bearer tokens as hashes, so that the file is no secret.
type Tokens []Token

// Token identifies one caller.
type Token struct {
	// Name is the caller's; in queues it is http/NAME.
	Name string `json:"name"`
	// SHA256 of the token, in hexadecimal digits.
	SHA256 string `json:"sha256"`
}

// validName keeps a name from matching the submitter patterns of other callers.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$`)

// ValidName reports whether a caller may have the name.
func ValidName(name string) bool { return validName.MatchString(name) }

// ReadTokens reads a file of tokens: a list of names and hashes.
func ReadTokens(content []byte) (Tokens, error) {
	var tokens Tokens
	if err := yaml.UnmarshalStrict(content, &tokens); err != nil {
		return nil, err
	}
	var faults []error
	seen := map[string]bool{}
	for i, t := range tokens {
		if !validName.MatchString(t.Name) {
			faults = append(faults, fmt.Errorf("[%d]: name %q: want at most 100 letters, digits, dots, underscores, dashes and @", i, t.Name))
		}
		hash, err := hex.DecodeString(t.SHA256)
		switch {
		case err != nil || len(hash) != sha256.Size:
			faults = append(faults, fmt.Errorf("[%d]: sha256 of %q: want %d hexadecimal digits, as `printf %%s TOKEN | sha256sum` prints them", i, t.Name, 2*sha256.Size))
		case seen[t.SHA256]:
			faults = append(faults, fmt.Errorf("[%d]: the token of %q is a duplicate; want one token for each name", i, t.Name))
		}
		seen[t.SHA256] = true
	}
	if len(tokens) == 0 {
		faults = append(faults, errors.New("the file has no token; want at least one, with name and sha256"))
	}
	return tokens, errors.Join(faults...)
}

var errUnknown = errors.New("unknown caller: send a client certificate that intake's authority has signed, or the header Authorization: Bearer TOKEN with one of intake's tokens")

// Identify returns the name in the request's client certificate, which the handshake
// has verified, or the name of its bearer token. until is zero: neither ends.
func (t Tokens) Identify(r *http.Request) (name string, until time.Time, err error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		name = r.TLS.VerifiedChains[0][0].Subject.CommonName
		if !validName.MatchString(name) {
			return "", until, fmt.Errorf("the common name %q of the client certificate is invalid: want letters, digits, dots, underscores, dashes and @", name)
		}
		return name, until, nil
	}
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		return "", until, errUnknown
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	given := []byte(hex.EncodeToString(sum[:]))
	for _, known := range t { // all of them, so that the duration reveals nothing
		if subtle.ConstantTimeCompare(given, []byte(strings.ToLower(known.SHA256))) == 1 {
			name = known.Name
		}
	}
	if name == "" {
		return "", until, errUnknown
	}
	return name, until, nil
}
