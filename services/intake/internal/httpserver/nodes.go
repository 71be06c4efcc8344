package httpserver

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/query"
)

func (s *Server) listNodes(w http.ResponseWriter, r *http.Request, _ string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	request, err := nodesRequest(r)
	if err != nil {
		return err
	}
	answer, err := s.Queries.SelectNodes(ctx, request)
	if err != nil {
		return err
	}
	if answer.Nodes == nil {
		answer.Nodes = []query.Node{}
	}
	write(w, http.StatusOK, answer)
	return nil
}

// nodesRequest reads which nodes are asked for.
func nodesRequest(r *http.Request) (query.NodesRequest, error) {
	values := r.URL.Query()
	request := query.NodesRequest{Cluster: values.Get("cluster"), Name: values.Get("name"), Prefix: values.Get("prefix"), State: values.Get("state")}
	for _, of := range []struct {
		name, value string
		longest     int
	}{{"cluster", request.Cluster, longestName}, {"name", request.Name, longestName}, {"prefix", request.Prefix, longestName}, {"from", values.Get("from"), 2*longestName + 1}} {
		if why := kube.BadText(of.value); why != "" || len(of.value) > of.longest {
			return request, fail(http.StatusBadRequest, "%s %.80q: want at most %d printable characters", of.name, of.value, of.longest)
		}
	}
	if text := values.Get("from"); text != "" {
		var is bool
		if request.From.Cluster, request.From.Name, is = strings.Cut(text, "/"); !is {
			return request, fail(http.StatusBadRequest, "from %.80q: want CLUSTER/NODE", text)
		}
	}
	if text := values.Get("limit"); text != "" {
		var err error
		if request.Limit, err = strconv.Atoi(text); err != nil || request.Limit < 1 {
			return request, fail(http.StatusBadRequest, "limit %.80q: want a whole number from 1 to %d", text, query.MaxPage)
		}
	}
	switch text := values.Get("holders"); text {
	case "", "false":
	case "true":
		request.Holders = true
	default:
		return request, fail(http.StatusBadRequest, "holders %.80q: want true or false", text)
	}
	if err := request.Check(); err != nil {
		return request, fail(http.StatusBadRequest, "%v", err)
	}
	return request, nil
}
