// Package overhttp calls Muster over the HTTP API of intake, for people without NATS. It
// gives the questions of package query their paths, so that commands are the same either way.
//
// It judges nothing: the server knows what the caller may see.
package overhttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
)

// Settings are where the server is, and as whom to ask.
type Settings struct {
	// URL of the server, such as https://muster.example.org.
	URL string
	// Token is a bearer token; empty without one.
	Token string
	// CA is a file with the authorities of the server, Certificate and Key files of a client
	// certificate; empty for the system's authorities and no certificate.
	CA, Certificate, Key string
}

// longestAnswer bounds an answer.
const longestAnswer = 64 << 20

// requestTimeout bounds one request; a submission is answered within ten seconds.
const requestTimeout = 20 * time.Second

// Client asks one server. It may be used concurrently.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// New returns a client. A token is not sent in the clear to another machine.
func New(s Settings) (*Client, error) {
	base, err := url.Parse(s.URL)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, fmt.Errorf("server %q: want a URL such as https://muster.example.org", s.URL)
	}
	if err := checkClear(base, s.Token); err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.CA != "" {
		content, err := os.ReadFile(s.CA)
		if err != nil {
			return nil, fmt.Errorf("read the authorities of the server: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("read the authorities of the server: %s has no PEM certificate", s.CA)
		}
	}
	if s.Certificate != "" || s.Key != "" {
		pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config
	transport.MaxIdleConnsPerHost = transport.MaxIdleConns // the console asks for many callers at once
	return &Client{base: base, token: s.Token, http: &http.Client{
		Transport: transport,
		// A redirection could carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// As returns a client of the same server, on the same connections, for another caller.
func (c *Client) As(token string) (*Client, error) {
	if err := checkClear(c.base, token); err != nil {
		return nil, err
	}
	other := *c
	other.token = token
	return &other, nil
}

// checkClear refuses to send a token in the clear to another machine.
func checkClear(base *url.URL, token string) error {
	if base.Scheme == "http" && token != "" && !isLoopback(base.Hostname()) {
		return fmt.Errorf("server %q: a token must not be sent in the clear: want https", base.Redacted())
	}
	return nil
}

// StatusOf returns the HTTP status with which the server has refused a request; 0 for an error
// of another kind.
func StatusOf(err error) int {
	var refused *refusedError
	if errors.As(err, &refused) {
		return refused.status
	}
	return 0
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// request is one request to the API.
type request struct {
	method, path string
	parameters   url.Values
	header       http.Header
	body         []byte
}

// refusedError is an answer of the server that is no success.
type refusedError struct {
	status  int
	problem httpapi.Problem
}

func (r *refusedError) Error() string {
	return fmt.Sprintf("the server answers %d %s: %s", r.status, http.StatusText(r.status), r.problem.Error)
}

// Unwrap has commands treat the refusal as that of queue-manager.
func (r *refusedError) Unwrap() error {
	if r.status == http.StatusServiceUnavailable {
		return query.ErrNoAnswer
	}
	return &query.ProblemError{Message: r.problem.Error, Busy: r.status == http.StatusTooManyRequests}
}

// isMissing reports whether the server answers that there is no such thing.
func isMissing(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused) && refused.status == http.StatusNotFound
}

// send sends a request. The caller closes the answer's body.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	address := *c.base
	address.Path = strings.TrimSuffix(address.Path, "/") + r.path
	address.RawPath, address.RawQuery = "", r.parameters.Encode()
	sent, err := http.NewRequestWithContext(ctx, r.method, address.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	if r.header != nil {
		sent.Header = r.header
	}
	if c.token != "" {
		sent.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(sent)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, c.unreachable(err))
	}
	return answer, nil
}

// do sends a request, and reads a successful answer into into.
func (c *Client) do(ctx context.Context, r request, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, longestAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: read the answer: %w", r.method, r.path, err)
	case len(content) > longestAnswer:
		return fmt.Errorf("%s %s: the answer has more than %d bytes", r.method, r.path, longestAnswer)
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return fmt.Errorf("%s %s: %w", r.method, r.path, refusal(answer.StatusCode, content))
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", r.method, r.path, err)
	}
	return nil
}

// refusal reads the answer to a request that failed.
func refusal(status int, content []byte) error {
	refused := &refusedError{status: status}
	if json.Unmarshal(content, &refused.problem) != nil || refused.problem.Error == "" {
		refused.problem.Error = "this is not Muster's HTTP API"
	}
	return refused
}

// unreachableError reports that there is no answer from the server.
type unreachableError struct {
	server string
	cause  error
}

func (u *unreachableError) Error() string {
	return fmt.Sprintf("cannot reach the server %s: %v", u.server, u.cause)
}

func (u *unreachableError) Unwrap() []error { return []error{exit.ErrUnreachable, u.cause} }

// unreachable words an error of a connection, whose request is known already.
func (c *Client) unreachable(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	return &unreachableError{c.base.Redacted(), err}
}
