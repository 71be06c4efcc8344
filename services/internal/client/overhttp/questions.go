package overhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/workload"
)

// errNotOverHTTP is wrapped for questions that the HTTP API does not answer.
var errNotOverHTTP = errors.New("this is not served over HTTP: use --nats-url instead of --server")

// Ask implements query.Transport.
func (c *Client) Ask(ctx context.Context, subject string, data []byte) ([]byte, error) {
	switch subject {
	case query.WorkloadsSubject:
		return answering(data, func(r query.WorkloadsRequest) (any, error) { return c.workloads(ctx, r) })
	case query.HistorySubject:
		return answering(data, func(r query.HistoryRequest) (any, error) { return c.history(ctx, r) })
	case query.ExplainSubject:
		return answering(data, func(r query.ExplainRequest) (any, error) { return c.explain(ctx, r) })
	case query.ManifestSubject:
		return answering(data, func(r query.ManifestRequest) (any, error) { return c.manifest(ctx, r) })
	case query.UsageSubject:
		return answering(data, func(r query.UsageRequest) (any, error) { return c.usage(ctx, r) })
	case query.ActivitySubject:
		return answering(data, func(r query.ActivityRequest) (any, error) { return c.activity(ctx, r) })
	case query.DecisionsSubject:
		return answering(data, func(r query.DecisionsRequest) (any, error) { return c.decisions(ctx, r) })
	case query.WhatIfSubject:
		return answering(data, func(json.RawMessage) (any, error) { return c.whatIf(ctx, data) })
	case query.ConfigureSubject:
		return answering(data, func(r query.ConfigureRequest) (any, error) { return c.configure(ctx, r) })
	case query.QueuesSubject:
		return c.raw(ctx, "/v1/queues")
	case query.NodesSubject:
		return c.nodes(ctx, data)
	case query.DemandSubject:
		return c.raw(ctx, "/v1/demand")
	case query.AppliedSubject:
		return c.raw(ctx, "/v1/applied")
	case query.StatusSubject:
		return c.raw(ctx, "/v1/status")
	}
	return nil, fmt.Errorf("ask %s: %w", subject, errNotOverHTTP)
}

// answering decodes a request and encodes its answer.
func answering[Request any](data []byte, answer func(Request) (any, error)) ([]byte, error) {
	var r Request
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	value, err := answer(r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

func (c *Client) raw(ctx context.Context, path string) ([]byte, error) {
	var content json.RawMessage
	err := c.do(ctx, request{method: http.MethodGet, path: path}, &content)
	return content, err
}

// workloads returns one workload, or all pages of a list.
func (c *Client) workloads(ctx context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
	if r.ID != "" {
		one, err := c.Describe(ctx, r.ID)
		if isMissing(err) {
			return query.WorkloadsAnswer{}, nil
		}
		return query.WorkloadsAnswer{Workloads: []workload.Record{one.Record}}, err
	}
	r.Limit = query.MaxPage
	answer := query.WorkloadsAnswer{Selected: len(r.Labels) > 0} // a server without the parameter refuses it
	for {
		page, err := c.Page(ctx, r)
		if err != nil {
			return answer, err
		}
		answer.Workloads = append(answer.Workloads, page.Workloads...)
		if page.Next == "" || len(page.Workloads) == 0 {
			return answer, nil
		}
		r.AfterID = page.Next
	}
}

// Page returns one page of workloads. The request's ID, After and Within are not asked for.
func (c *Client) Page(ctx context.Context, r query.WorkloadsRequest) (httpapi.WorkloadsPage, error) {
	parameters := url.Values{}
	for name, value := range map[string]string{"queue": r.Queue, "namespace": r.Namespace, "name": r.Name, "order": r.Order, "after": string(r.AfterID)} {
		if value != "" {
			parameters.Set(name, value)
		}
	}
	if r.Limit > 0 {
		parameters.Set("limit", strconv.Itoa(r.Limit))
	}
	if len(r.Labels) > 0 {
		parameters.Set("labelSelector", query.SelectorText(r.Labels))
	}
	var phases []string
	for _, phase := range r.Phases {
		phases = append(phases, string(phase))
	}
	if len(phases) > 0 {
		parameters.Set("phase", strings.Join(phases, ","))
	}
	var page httpapi.WorkloadsPage
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/workloads", parameters: parameters}, &page)
	return page, err
}

// Caller returns as whom the server answers.
func (c *Client) Caller(ctx context.Context) (httpapi.Caller, error) {
	var caller httpapi.Caller
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/caller"}, &caller)
	return caller, err
}

// DeadLetters returns the last messages that could not be processed.
func (c *Client) DeadLetters(ctx context.Context) (httpapi.DeadLetters, error) {
	var answer httpapi.DeadLetters
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/dead-letters"}, &answer)
	return answer, err
}

// Describe returns a workload with its history.
func (c *Client) Describe(ctx context.Context, id workload.ID) (httpapi.Description, error) {
	var one httpapi.Description
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/workloads/" + url.PathEscape(string(id))}, &one)
	return one, err
}

func (c *Client) history(ctx context.Context, r query.HistoryRequest) (query.HistoryAnswer, error) {
	one, err := c.Describe(ctx, r.ID)
	return query.HistoryAnswer{Entries: one.History, Estimates: one.Estimates}, err
}

func (c *Client) manifest(ctx context.Context, r query.ManifestRequest) (query.ManifestAnswer, error) {
	var answer query.ManifestAnswer
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/workloads/" + url.PathEscape(string(r.ID)) + "/manifest"}, &answer)
	return answer, err
}

// configure holds or resumes a queue or ClusterQueue, or cordons or uncordons a cluster; other changes of the configuration need
// NATS. The server writes who asks, and since when.
func (c *Client) configure(ctx context.Context, r query.ConfigureRequest) (query.ConfigureAnswer, error) {
	if r.DryRun { // no request of the HTTP API checks a change without making it
		return query.ConfigureAnswer{}, fmt.Errorf("check a change without making it (dry run): %w", errNotOverHTTP)
	}
	if name, made, is := reservationIn(r); is {
		return c.reserve(ctx, name, made)
	}
	if change, key, is := clusterIn(r); is {
		var ignored json.RawMessage // the cluster as it is then
		if err := c.do(ctx, change, &ignored); err != nil {
			return query.ConfigureAnswer{}, err
		}
		return query.ConfigureAnswer{Objects: []query.Configured{{Key: key, Outcome: query.Changed}}}, nil
	}
	hold := struct {
		Kind     string
		Metadata struct{ Namespace, Name string }
		Spec     struct {
			Why   string
			Drain bool
		}
	}{}
	change, outcome := request{method: http.MethodDelete, parameters: url.Values{}}, query.Deleted
	switch {
	case len(r.Apply) == 1 && len(r.Delete) == 0 && json.Unmarshal(r.Apply[0], &hold) == nil && kueue.IsHold(hold.Kind):
		change.method, outcome = http.MethodPut, query.Created
		if hold.Spec.Why != "" {
			change.parameters.Set("why", hold.Spec.Why)
		}
		if hold.Spec.Drain {
			change.parameters.Set("drain", "true")
		}
	case len(r.Delete) == 1 && len(r.Apply) == 0 && kueue.IsHold(r.Delete[0].Kind):
		hold.Kind, hold.Metadata.Namespace, hold.Metadata.Name = r.Delete[0].Kind, r.Delete[0].Namespace, r.Delete[0].Name
	default:
		return query.ConfigureAnswer{}, fmt.Errorf("apply or delete manifests: %w", errNotOverHTTP)
	}
	key := kueue.Key{Kind: hold.Kind, Namespace: hold.Metadata.Namespace, Name: hold.Metadata.Name}
	kind, order := "queues", "hold"
	switch key.Kind {
	case kueue.ClusterQueueHold:
		kind = "clusterqueues"
	case kueue.ClusterCordon:
		kind, order = "clusters", "cordon"
	}
	change.path = "/v1/" + kind + "/" + url.PathEscape(key.Name) + "/" + order
	if key.Namespace != "" {
		change.parameters.Set("namespace", key.Namespace)
	} else if key.Kind == kueue.QueueHold {
		change.parameters.Set("allNamespaces", "true") // as in the manifest of a hold
	}
	var ignored json.RawMessage // the queue as it is then
	if err := c.do(ctx, change, &ignored); err != nil {
		return query.ConfigureAnswer{}, err
	}
	return query.ConfigureAnswer{Objects: []query.Configured{{Key: key, Outcome: outcome}}}, nil
}

// Submission is a manifest to submit.
type Submission struct {
	Queue, ID, PriorityClass string
	Priority                 int32
	Manifest                 []byte
}

// Submit submits a manifest. Its answer has the record once the workload is stored.
func (c *Client) Submit(ctx context.Context, s Submission) (httpapi.Submission, error) {
	parameters, header := url.Values{}, http.Header{}
	if s.Priority != 0 {
		parameters.Set("priority", strconv.Itoa(int(s.Priority)))
	}
	if s.PriorityClass != "" {
		parameters.Set("priorityClass", s.PriorityClass)
	}
	if s.ID != "" {
		header.Set(httpapi.IdempotencyKey, s.ID)
	}
	var answer httpapi.Submission
	err := c.do(ctx, request{method: http.MethodPost, path: "/v1/queues/" + url.PathEscape(s.Queue) + "/workloads", parameters: parameters, header: header, body: s.Manifest}, &answer)
	return answer, err
}
