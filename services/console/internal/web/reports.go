package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/console/internal/page"
	"muster.dev/muster/services/internal/client/overhttp"
	"muster.dev/muster/services/internal/client/times"
)

// How long answers that cost queue-manager more serve all pages of a caller.
const (
	freshActivity  = 15 * time.Second
	freshUsage     = 30 * time.Second
	freshDecisions = 5 * time.Second
	freshWhatIf    = 10 * time.Second
	// freshDeadLetters is for up to 1,000 messages that intake reads one by one.
	freshDeadLetters = 5 * time.Second
)

// beginActivity begins to make the charts of a page, and returns what waits for them.
func (s *Server) beginActivity(ctx context.Context, r *http.Request, c *caller, queue string) func() (page.Activity, error) {
	return begin(func() (page.Activity, error) { return s.activity(ctx, r, c, queue) })
}

// activity makes the charts of a page, of one queue or of all. A reason stands in the place of
// charts that are missing.
func (s *Server) activity(ctx context.Context, r *http.Request, c *caller, queue string) (page.Activity, error) {
	name := r.URL.Query().Get("window")
	window, known := page.WindowNamed(name)
	if !known {
		return page.Activity{}, refuse(http.StatusBadRequest, "window=%.20q: want 1h, 6h, 24h or 7d.", name)
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience(r))
	defer cancel()
	asked := query.ActivityRequest{Queue: queue, StepSeconds: int(window.Step.Seconds())}
	answer, err := ask(ctx, s.answers, c.asks(fmt.Sprintf("activity %s %q", window.Name, queue)), freshActivity, func(ctx context.Context) (query.ActivityAnswer, error) {
		asked.Since = s.Now().Add(-window.Length).Truncate(window.Step)
		return query.NewClientOver(c.api).Patient().Activity(ctx, asked)
	})
	path := strings.TrimPrefix(r.URL.EscapedPath(), livePath)
	switch status := overhttp.StatusOf(err); {
	case err == nil:
		return page.MakeActivity(answer, path, r.URL.Query(), window), nil
	case errors.Is(err, context.DeadlineExceeded), status == http.StatusTooManyRequests:
		return page.NoActivity("The charts take a moment and follow here. Without scripts, reload the page."), nil
	case status == http.StatusUnauthorized:
		return page.Activity{}, err
	default:
		return page.NoActivity("There are no charts: " + err.Error()), nil
	}
}

func loadUsage(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	values := r.URL.Query()
	form := page.UsageForm{
		Since: values.Get("since"), Until: values.Get("until"), By: values.Get("by"), Queue: values.Get("queue"), Namespace: values.Get("namespace"),
		Resource: values.Get("resource"), Price: values.Get("price"),
	}
	if form.Since == "" {
		form.Since = "7d"
	}
	if !values.Has("by") {
		form.By = query.ByQueue
	}
	request, err := usageRequest(form, s.Now())
	if err != nil {
		return content{}, refuse(http.StatusBadRequest, "%v.", err)
	}
	answer, err := ask(ctx, s.answers, c.asks(fmt.Sprintf("usage %+v", form)), freshUsage, func(ctx context.Context) (query.UsageAnswer, error) {
		return query.NewClientOver(c.api).Patient().Usage(ctx, request)
	})
	return content{title: "Usage", model: page.MakeUsage(answer, form.Resource != ""), form: "usage-form", formModel: form}, err
}

func usageRequest(form page.UsageForm, now time.Time) (r query.UsageRequest, err error) {
	r = query.UsageRequest{By: listed(form.By), Queue: form.Queue, Namespace: form.Namespace, Until: now}
	if r.Since, err = times.Parse(form.Since, now); err != nil {
		return r, fmt.Errorf("since %.80q: %s", form.Since, times.Want)
	}
	if form.Until != "" {
		if r.Until, err = times.Parse(form.Until, now); err != nil {
			return r, fmt.Errorf("until %.80q: %s", form.Until, times.Want)
		}
	}
	for _, name := range listed(form.Resource) {
		r.Resources = append(r.Resources, resource.Name(name))
	}
	for _, text := range listed(form.Price) {
		price, err := query.ParsePrice(text)
		if err != nil {
			return r, err
		}
		r.Prices = append(r.Prices, price)
	}
	return r, r.Check(now)
}

// listed splits a text at commas.
func listed(text string) []string {
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" })
}

func loadDecisions(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	values, request := r.URL.Query(), query.DecisionsRequest{Limit: mostDecisions}
	if text := values.Get("before"); text != "" {
		key, err := query.ParseDecisionKey(text)
		if err != nil {
			return content{}, refuse(http.StatusBadRequest, "before=%v.", err)
		}
		request.Before = &key
	}
	if text := values.Get("until"); text != "" {
		var err error
		if request.Until, err = times.Parse(text, s.Now()); err != nil {
			return content{}, refuse(http.StatusBadRequest, "until=%.80q: %s.", text, times.Want)
		}
	}
	of := values.Get("workload")
	if of != "" && uuid.Validate(of) != nil {
		return content{}, refuse(http.StatusBadRequest, "workload=%.40q: want the id of a workload.", of)
	}
	what := c.asks("decisions " + values.Get("before") + " " + values.Get("until"))
	answer, err := ask(ctx, s.answers, what, freshDecisions, func(ctx context.Context) (query.DecisionsAnswer, error) {
		return query.NewClientOver(c.api).Patient().Decisions(ctx, request)
	})
	return content{title: "Decisions", model: page.MakeDecisions(answer, workload.ID(of))}, err
}

// mostDecisions is how many decisions a page has.
const mostDecisions = 50

func loadDeadLetters(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	from, err := rowOf(r)
	if err != nil {
		return content{}, err
	}
	answer, err := ask(ctx, s.answers, c.asks("dead letters"), freshDeadLetters, c.api.DeadLetters)
	return content{title: "Dead letters", model: page.MakeDeadLetters(answer, from, s.Now())}, err
}
