package httpserver

import (
	"context"
	"net/http"
	"slices"

	"muster.dev/muster/pkg/message/query"
)

// changeCordon cordons or drains a cluster, or uncordons it, and answers with the cluster as
// it is then. An order that stands already is not given again.
func (s *Server) changeCordon(w http.ResponseWriter, r *http.Request, caller string) error {
	why, err := whyOf(r)
	if err != nil {
		return err
	}
	drain := r.URL.Query().Get("drain")
	if drain != "" && drain != "true" && drain != "false" {
		return fail(http.StatusBadRequest, "drain %.80q: want true or false", drain)
	}
	change := query.HoldRequest{Cluster: r.PathValue("cluster"), Drain: drain == "true", By: caller, Why: why}
	if r.Method == http.MethodDelete {
		change = query.HoldRequest{Cluster: change.Cluster, Resume: true, By: caller}
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	c, err := s.cluster(ctx, change.Cluster)
	if err != nil {
		return err
	}
	if c.Cordon != nil && c.Cordon.Left {
		return fail(http.StatusConflict, "cluster %s has left; `muster cluster join %s`, or PUT /v1/clusters/%s, has it back", c.Name, c.Name, c.Name)
	}
	if is := c.Cordon != nil; is == change.Resume || is && c.Cordon.Drain != change.Drain {
		if _, err := s.Queries.Hold(ctx, change); err != nil {
			return err
		}
		if c, err = s.cluster(ctx, change.Cluster); err != nil {
			return err
		}
	}
	write(w, http.StatusOK, c)
	return nil
}

func (s *Server) cluster(ctx context.Context, name string) (query.ClusterStatus, error) {
	answer, err := s.Queries.Status(ctx)
	if err != nil {
		return query.ClusterStatus{}, err
	}
	i := slices.IndexFunc(answer.Clusters, func(c query.ClusterStatus) bool { return c.Name == name })
	if i < 0 {
		return query.ClusterStatus{}, fail(http.StatusNotFound, "there is no cluster %.80q", name)
	}
	return answer.Clusters[i], nil
}
