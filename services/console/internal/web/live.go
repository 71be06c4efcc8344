package web

import (
	"context"
	"crypto/sha256"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"muster.dev/muster/services/console/internal/page"
)

// view is a kind of page: what it asks, and how it is shown.
type view struct {
	// template is that of the region.
	template string
	// every is the pause between two looks for something new; zero for a page that stays as it is.
	every time.Duration
	load  func(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error)
}

// content is a page before it is HTML.
type content struct {
	title string
	model any
	// form is the template above the region, of formModel; empty for none.
	form      string
	formModel any
}

// askTimeout bounds what a page asks altogether.
const askTimeout = 15 * time.Second

func (s *Server) load(r *http.Request, c *caller, v view) (content, template.HTML, error) {
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	of, err := v.load(ctx, s, r, c)
	if err != nil {
		return of, "", err
	}
	region, err := s.region(v.template, of.model)
	return of, region, err
}

// show writes a page.
func (s *Server) show(v view) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) error {
		of, region, err := s.load(r, c, v)
		if err != nil {
			return err
		}
		f := page.Frame{Title: of.title, Region: region, At: s.Now().UTC().Format(time.TimeOnly) + " UTC"}
		if v.every > 0 {
			f.Live = liveOf(r.URL)
		}
		if of.form != "" {
			if f.Before, err = s.region(of.form, of.formModel); err != nil {
				return err
			}
		}
		s.write(w, r, c.Session, http.StatusOK, f)
		return nil
	}
}

// livePath is before the path of a page for its updates.
const livePath = "/live"

// liveOf is where the updates of a page come from.
func liveOf(u *url.URL) string {
	return (&url.URL{Path: livePath + u.Path, RawPath: liveRaw(u), RawQuery: u.RawQuery}).String()
}

func liveRaw(u *url.URL) string {
	if u.RawPath == "" {
		return ""
	}
	return livePath + u.RawPath
}

// isLive reports whether the request is for the updates of a page.
func isLive(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, livePath) }

// heartbeat keeps proxies from closing a quiet stream.
const heartbeat = 15 * time.Second

// live sends the region of a page each time it differs from what was sent last, until the
// browser leaves, the session ends or the caller may not see the page any more.
func (s *Server) live(v view) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) error {
		if !s.streams.Acquire(c.Caller) {
			return refuse(http.StatusTooManyRequests, "Too many live pages are open: one caller may have %d, and all together %d.", mostStreams, mostAllStreams)
		}
		defer s.streams.Release(c.Caller)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Accel-Buffering", "no")
		out := &stream{w: w, control: http.NewResponseController(w)}
		if out.write("retry: 3000\n\n") != nil {
			return nil
		}
		var sent [sha256.Size]byte
		quiet := time.Now()
		pause := time.NewTimer(0)
		defer pause.Stop()
		for {
			select {
			case <-r.Context().Done():
				return nil
			case <-pause.C:
			}
			text, ends := "", false
			if s.sessions.Peek(idOf(r, s.Secure)) == nil {
				text, ends = event("gone", "log in again"), true
			} else if _, region, err := s.load(r, c, v); r.Context().Err() != nil {
				return nil
			} else if err != nil {
				text, ends = s.notLive(r, err)
				sent = [sha256.Size]byte{}
			} else if sum := sha256.Sum256([]byte(region)); sum != sent {
				text, sent = event("region", string(region)), sum
			}
			if text == "" && time.Since(quiet) > heartbeat {
				text = ": alive\n\n"
			}
			if text != "" {
				if out.write(text) != nil || ends {
					return nil
				}
				quiet = time.Now()
			}
			pause.Reset(v.every)
		}
	}
}

// notLive is the event of an error, and whether the page has no more updates.
func (s *Server) notLive(r *http.Request, err error) (text string, ends bool) {
	status, message := s.failed(r, err)
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusBadRequest:
		return event("gone", message), true
	}
	return event("stale", message), false
}

// event is one server-sent event.
func event(name, data string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "event: %s\n", name)
	for line := range strings.SplitSeq(strings.ReplaceAll(data, "\r", ""), "\n") {
		text.WriteString("data: " + line + "\n")
	}
	text.WriteString("\n")
	return text.String()
}

// stream writes to a browser, which has writeMost for each write.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *stream) write(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeMost)); err != nil {
		return err
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.control.Flush()
}
