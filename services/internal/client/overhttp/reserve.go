package overhttp

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
)

// reservationIn returns the reservation that a change of the configuration makes, or the name
// of the one that it deletes.
func reservationIn(r query.ConfigureRequest) (name string, made *quota.Reservation, is bool) {
	switch {
	case len(r.Delete) == 1 && len(r.Apply) == 0 && r.Delete[0].Kind == kueue.Reservation:
		return r.Delete[0].Name, nil, true
	case len(r.Apply) == 1 && len(r.Delete) == 0:
		object, err := kueue.ParseOne(r.Apply[0])
		if err != nil || object.Kind != kueue.Reservation {
			return "", nil, false
		}
		return object.Name, &object.Policy.Reservations[0], true
	}
	return "", nil, false
}

// reserve makes a reservation, or deletes the one of a name. The server writes who asks, and
// since when.
func (c *Client) reserve(ctx context.Context, name string, made *quota.Reservation) (query.ConfigureAnswer, error) {
	change, outcome := request{method: http.MethodDelete, path: "/v1/reservations/" + url.PathEscape(name)}, query.Deleted
	if made != nil {
		change.method, outcome = http.MethodPut, query.Created
		change.parameters = parametersOf(made)
	}
	answer := query.ConfigureAnswer{Objects: []query.Configured{{Key: kueue.Key{Kind: kueue.Reservation, Name: name}, Outcome: outcome}}}
	var ignored json.RawMessage // the reservation as it is stored
	err := c.do(ctx, change, &ignored)
	if made == nil && isMissing(err) {
		answer.Objects[0].Outcome, err = query.NotThere, nil
	}
	return answer, err
}

// Reservations returns the reservations of nodes.
func (c *Client) Reservations(ctx context.Context) (httpapi.Reservations, error) {
	var answer httpapi.Reservations
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/reservations"}, &answer)
	return answer, err
}

// Reserve makes a reservation of nodes, or replaces the one of its name.
func (c *Client) Reserve(ctx context.Context, r quota.Reservation) error {
	_, err := c.reserve(ctx, r.Name, &r)
	return err
}

// Unreserve deletes a reservation of nodes, if it is there.
func (c *Client) Unreserve(ctx context.Context, name string) error {
	_, err := c.reserve(ctx, name, nil)
	return err
}

func parametersOf(r *quota.Reservation) url.Values {
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(r.NodeLabels)) {
		labels = append(labels, key+"="+r.NodeLabels[key])
	}
	parameters := url.Values{}
	for name, value := range map[string]string{
		"from": r.From.UTC().Format(time.RFC3339), "until": r.Until.UTC().Format(time.RFC3339), "node": strings.Join(r.Nodes, ","),
		"label": strings.Join(labels, ","), "cluster": r.Cluster, "clusterQueue": r.ClusterQueue, "user": r.User, "workload": r.Workload, "why": r.Why,
	} {
		if value != "" {
			parameters.Set(name, value)
		}
	}
	if r.Evict {
		parameters.Set("evict", "true")
	}
	return parameters
}
