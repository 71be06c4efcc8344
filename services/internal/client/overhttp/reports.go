package overhttp

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
)

func (c *Client) explain(ctx context.Context, r query.ExplainRequest) (query.ExplainAnswer, error) {
	parameters := url.Values{}
	if r.Certificate {
		parameters.Set("certificate", "true")
	}
	var answer query.ExplainAnswer
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/workloads/" + url.PathEscape(string(r.ID)) + "/explanation", parameters: parameters}, &answer)
	return answer, err
}

func (c *Client) usage(ctx context.Context, r query.UsageRequest) (query.UsageAnswer, error) {
	parameters := url.Values{"since": {r.Since.Format(time.RFC3339Nano)}}
	if !r.Until.IsZero() {
		parameters.Set("until", r.Until.Format(time.RFC3339Nano))
	}
	var names, prices []string
	for _, name := range r.Resources {
		names = append(names, string(name))
	}
	for _, p := range r.Prices {
		prices = append(prices, p.String())
	}
	for name, value := range map[string]string{
		"queue": r.Queue, "namespace": r.Namespace, "by": strings.Join(r.By, ","), "resource": strings.Join(names, ","), "price": strings.Join(prices, ","),
	} {
		if value != "" {
			parameters.Set(name, value)
		}
	}
	var answer query.UsageAnswer
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/usage", parameters: parameters}, &answer)
	return answer, err
}

func (c *Client) activity(ctx context.Context, r query.ActivityRequest) (answer query.ActivityAnswer, err error) {
	parameters := url.Values{"since": {r.Since.Format(time.RFC3339Nano)}, "step": {strconv.Itoa(r.StepSeconds)}}
	if r.Queue != "" {
		parameters.Set("queue", r.Queue)
	}
	err = c.do(ctx, request{method: http.MethodGet, path: "/v1/activity", parameters: parameters}, &answer)
	return answer, err
}

func (c *Client) decisions(ctx context.Context, r query.DecisionsRequest) (answer query.DecisionsAnswer, err error) {
	parameters := url.Values{}
	if !r.Until.IsZero() {
		parameters.Set("until", r.Until.Format(time.RFC3339Nano))
	}
	if r.Before != nil {
		parameters.Set("before", r.Before.String())
	}
	if r.Limit > 0 {
		parameters.Set("limit", strconv.Itoa(r.Limit))
	}
	err = c.do(ctx, request{method: http.MethodGet, path: "/v1/decisions", parameters: parameters}, &answer)
	return answer, err
}

// whatIf sends the request as it is; the server sees to what the caller may ask.
func (c *Client) whatIf(ctx context.Context, body []byte) (answer query.WhatIfAnswer, err error) {
	err = c.do(ctx, request{method: http.MethodPost, path: "/v1/whatif", header: http.Header{"Content-Type": {"application/json"}}, body: body}, &answer)
	return answer, err
}
