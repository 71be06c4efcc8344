package httpserver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
)

// reserve reserves nodes, and answers with the reservation as it is stored.
func (s *Server) reserve(w http.ResponseWriter, r *http.Request, caller string) error {
	asked, err := reservationOf(r)
	if err != nil {
		return err
	}
	why, err := whyOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	_, err = s.Queries.Hold(ctx, query.HoldRequest{Reservation: &asked, By: caller, Why: why})
	var refused *query.ProblemError
	if errors.As(err, &refused) && !refused.Busy {
		return fail(http.StatusUnprocessableEntity, "%s", refused.Message)
	}
	if err != nil {
		return err
	}
	made, err := s.reservation(ctx, asked.Name)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, made)
	return nil
}

// unreserve deletes a reservation, and answers with what it was.
func (s *Server) unreserve(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	made, err := s.reservation(ctx, r.PathValue("reservation"))
	if err != nil {
		return err
	}
	if _, err := s.Queries.Hold(ctx, query.HoldRequest{Reservation: &quota.Reservation{Name: made.Name}, Resume: true, By: caller}); err != nil {
		return err
	}
	write(w, http.StatusOK, made)
	return nil
}

func (s *Server) listReservations(w http.ResponseWriter, r *http.Request, _ string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	all, err := s.reservations(ctx)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, httpapi.Reservations{Reservations: all})
	return nil
}

func (s *Server) reservations(ctx context.Context) ([]quota.Reservation, error) {
	answer, err := s.Queries.Applied(ctx)
	if err != nil {
		return nil, err
	}
	return answer.Reservations()
}

func (s *Server) reservation(ctx context.Context, name string) (quota.Reservation, error) {
	all, err := s.reservations(ctx)
	if err != nil {
		return quota.Reservation{}, err
	}
	i := slices.IndexFunc(all, func(r quota.Reservation) bool { return r.Name == name })
	if i < 0 {
		return quota.Reservation{}, fail(http.StatusNotFound, "there is no reservation %.80q", name)
	}
	return all[i], nil
}

// reservationOf reads a reservation of the parameters of a request.
func reservationOf(r *http.Request) (quota.Reservation, error) {
	parameters := r.URL.Query()
	made := quota.Reservation{
		Name: r.PathValue("reservation"), Cluster: parameters.Get("cluster"), ClusterQueue: parameters.Get("clusterQueue"),
		User: parameters.Get("user"), Workload: parameters.Get("workload"),
	}
	for _, end := range []struct {
		name string
		into *time.Time
	}{{"from", &made.From}, {"until", &made.Until}} {
		at, err := time.Parse(time.RFC3339, parameters.Get(end.name))
		if err != nil {
			return made, fail(http.StatusBadRequest, "%s %.80q: want a time, such as 2026-12-01T08:00:00Z", end.name, parameters.Get(end.name))
		}
		*end.into = at.UTC()
	}
	if names := parameters.Get("node"); names != "" {
		made.Nodes = strings.Split(names, ",")
	}
	for _, label := range strings.Split(parameters.Get("label"), ",") {
		key, value, is := strings.Cut(label, "=")
		switch {
		case label == "":
		case !is:
			return made, fail(http.StatusBadRequest, "label %.80q: want a label and its value, such as pool=a100", label)
		case made.NodeLabels == nil:
			made.NodeLabels = map[string]string{key: value}
		default:
			made.NodeLabels[key] = value
		}
	}
	switch evict := parameters.Get("evict"); evict {
	case "", "false":
	case "true":
		made.Evict = true
	default:
		return made, fail(http.StatusBadRequest, "evict %.80q: want true or false", evict)
	}
	return made, nil
}
