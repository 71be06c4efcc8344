package httpserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
)

// joinCluster describes a cluster, and has it back if it had left. It answers with the
// cluster as it is then.
func (s *Server) joinCluster(w http.ResponseWriter, r *http.Request, caller string) error {
	described, err := descriptionOf(r.PathValue("cluster"), r.URL.Query())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	c, err := s.cluster(ctx, described.Name)
	var missing *failure
	if err != nil && !(errors.As(err, &missing) && missing.status == http.StatusNotFound) {
		return err
	}
	change := query.HoldRequest{Join: &described, Resume: c.Cordon != nil && c.Cordon.Left, By: caller}
	_, err = s.Queries.Hold(ctx, change)
	var refused *query.ProblemError
	if errors.As(err, &refused) && !refused.Busy {
		return fail(http.StatusUnprocessableEntity, "%s", refused.Message)
	}
	if err != nil {
		return err
	}
	if c, err = s.cluster(ctx, described.Name); err != nil {
		return err
	}
	write(w, http.StatusOK, c)
	return nil
}

// descriptionOf reads the description of a cluster from the parameters of a request.
func descriptionOf(name string, parameters url.Values) (quota.Cluster, error) {
	described := quota.Cluster{Name: name}
	for _, label := range listed(parameters["label"]) {
		key, value, is := strings.Cut(label, "=")
		if !is {
			return described, fail(http.StatusBadRequest, "label %.80q: want a label and its value, such as tier=spot", label)
		}
		if described.Labels == nil {
			described.Labels = map[string]string{}
		}
		described.Labels[key] = value
	}
	prices := map[string]string{}
	for _, cost := range listed(parameters["cost"]) {
		name, price, is := strings.Cut(cost, "=")
		if !is {
			return described, fail(http.StatusBadRequest, "cost %.80q: want a resource and its price, such as nvidia.com/gpu=2.5", cost)
		}
		prices[name] = price
	}
	if len(prices) > 0 {
		cost, err := quota.ParseCost(prices)
		if err != nil {
			return described, fail(http.StatusBadRequest, "cost: %v", err)
		}
		described.Cost = cost
	}
	described.Queues, described.Flavors = listed(parameters["queue"]), listed(parameters["flavor"])
	return described, nil
}

// listed splits the values of a parameter at their commas; an empty text has no element.
func listed(values []string) (elements []string) {
	for _, text := range values {
		if text != "" {
			elements = append(elements, strings.Split(text, ",")...)
		}
	}
	return elements
}

// leaveCluster has a cluster leave, and answers with it as it is then. One that leaves
// already is left alone, unless it is now to leave by force.
func (s *Server) leaveCluster(w http.ResponseWriter, r *http.Request, caller string) error {
	why, err := whyOf(r)
	if err != nil {
		return err
	}
	force := r.URL.Query().Get("force")
	switch {
	case force != "" && force != "true" && force != "false":
		return fail(http.StatusBadRequest, "force %.80q: want true or false", force)
	case force == "true" && strings.TrimSpace(why) == "":
		return fail(http.StatusBadRequest, "why is missing: want the reason for freeing the places by force")
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	c, err := s.cluster(ctx, r.PathValue("cluster"))
	if err != nil {
		return err
	}
	forced := force == "true"
	if c.Live > 0 && !forced {
		return fail(http.StatusConflict, "%d workloads hold places in cluster %s: drain it first, or ask with force=true, which frees the places although pods may still run", c.Live, c.Name)
	}
	if c.Cordon == nil || !c.Cordon.Left || forced && !c.Cordon.Forced {
		if _, err := s.Queries.Hold(ctx, query.HoldRequest{Cluster: c.Name, Leave: true, Force: forced, By: caller, Why: why}); err != nil {
			return err
		}
		if after, err := s.cluster(ctx, c.Name); err == nil { // else nothing is known of it any more
			c = after
		}
	}
	write(w, http.StatusOK, c)
	return nil
}
