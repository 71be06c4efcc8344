package page

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// Template is the URL of a page elsewhere about a workload, with places for what the workload is.
// The zero value has no URL.
type Template struct{ parts []templatePart }

// templatePart is a text, or, where place is set, what stands in its place.
type templatePart struct {
	text, place string
	write       func(value string) (written string, may bool)
}

// templatePlaces lists the places that a template may have.
const templatePlaces = "{cluster}, {namespace}, {name} and {workload}"

// longestTemplate bounds a template, and so the URLs that it makes.
const longestTemplate = 2000

var (
	inBraces = regexp.MustCompile(`\{[^{}]*\}`)
	dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// ParseTemplate reads a template; that of an empty text has no URL.
func ParseTemplate(text string) (Template, error) {
	if text == "" {
		return Template{}, nil
	}
	if len(text) > longestTemplate {
		return Template{}, fmt.Errorf("%.80q...: want at most %d bytes", text, longestTemplate)
	}
	for _, place := range inBraces.FindAllString(text, -1) {
		if !slices.Contains([]string{"{cluster}", "{namespace}", "{name}", "{workload}"}, place) {
			return Template{}, fmt.Errorf("%q: there is no %q; want %s", text, place, templatePlaces)
		}
	}
	sample := inBraces.ReplaceAllString(text, "x")
	if strings.ContainsAny(sample, "{}") {
		return Template{}, fmt.Errorf("%q: a brace is not closed, or not opened; want %s", text, templatePlaces)
	}
	if !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "http://") {
		return Template{}, fmt.Errorf("%q: want a URL that begins with https:// or http://", text)
	}
	parsed, err := url.Parse(sample)
	switch {
	case err != nil:
		return Template{}, fmt.Errorf("%q: want a URL: %w", text, errors.Unwrap(err))
	case parsed.Hostname() == "":
		return Template{}, fmt.Errorf("%q: want a URL with a host", text)
	case parsed.User != nil:
		return Template{}, fmt.Errorf("%q: want a URL without a user: browsers show it", text)
	}
	return Template{templateParts(text)}, nil
}

// templateParts cuts a template that was checked. How a value is written depends on the part of
// the URL in which it stands.
func templateParts(text string) (parts []templatePart) {
	last := 0
	for _, at := range inBraces.FindAllStringIndex(text, -1) {
		if at[0] > last {
			parts = append(parts, templatePart{text: text[last:at[0]]})
		}
		_, rest, _ := strings.Cut(text[:at[0]], "://")
		write := inPath
		switch {
		case !strings.ContainsAny(rest, "/?#"):
			write = inHost
		case strings.Contains(rest, "?") && !strings.Contains(rest, "#"):
			write = inQuery
		}
		parts = append(parts, templatePart{place: text[at[0]+1 : at[1]-1], write: write})
		last = at[1]
	}
	return append(parts, templatePart{text: text[last:]})
}

// inHost takes what is one label of a host name: a value with a dot or a slash could name another
// host.
func inHost(value string) (string, bool) { return value, dnsLabel.MatchString(value) }

// inPath keeps a value one segment: of one that is two dots browsers would make the folder above.
func inPath(value string) (string, bool) {
	return url.PathEscape(value), value != "" && value != "." && value != ".."
}

func inQuery(value string) (string, bool) { return url.QueryEscape(value), value != "" }

// of returns the URL for a workload; empty where a value is missing or may not stand in its place.
func (t Template) of(r *workload.Record) string {
	values := map[string]string{"cluster": r.Cluster, "namespace": r.Namespace, "name": r.Name, "workload": string(r.ID)}
	var made strings.Builder
	for _, part := range t.parts {
		if part.place == "" {
			made.WriteString(part.text)
			continue
		}
		written, may := part.write(values[part.place])
		if !may {
			return ""
		}
		made.WriteString(written)
	}
	return made.String()
}

// Elsewhere has the templates of pages about workloads that are not of the console.
type Elsewhere struct{ Dashboard, Logs Template }

// External is a link to a page elsewhere.
type External struct{ Name, Link string }

// of lists the pages about a Ray workload that has pods: also the logs after its end, because
// they may be kept longer than pods.
func (e Elsewhere) of(r *workload.Record) (links []External) {
	live := r.Phase == workload.Running || r.Phase == workload.Dispatched
	if !strings.HasPrefix(r.Kind, "Ray") || !live && !(r.Phase.Final() && !r.Times.Dispatched.IsZero()) {
		return nil
	}
	if link := e.Dashboard.of(r); live && link != "" {
		links = append(links, External{"Ray dashboard", link})
	}
	if link := e.Logs.of(r); link != "" {
		links = append(links, External{"Logs", link})
	}
	return links
}
