package web

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/console/internal/page"
	"muster.dev/muster/services/internal/client/overhttp"
)

// nodeChanges are what may be asked of a node: it is closed by a reservation of its own, for
// maintenance.
func nodeChanges() []change {
	hours := page.Input{Name: "hours", Label: "For how many hours", Longest: 4, Number: true, Required: true}
	return []change{
		{name: "close", label: "Close", effect: "Reserve the node for maintenance: no gang gets places on it. What runs there goes on, and those who wait see the reason.", operators: true, inputs: []page.Input{hours, why()}},
		{name: "empty", label: "Close and empty", effect: "Reserve the node for maintenance, and evict the gangs on it, which start again elsewhere. What they have not saved is lost.", operators: true, inputs: []page.Input{hours, why()}},
		{name: "open", label: "Open", effect: "Delete the reservation by which the node was closed here.", operators: true},
	}
}

// closing is the name of the reservation that closes a node.
func closing(cluster, node string) string {
	return fmt.Sprintf("closed-%x", sha256.Sum256([]byte(cluster+"/"+node)))[:24]
}

// nodeActions are those that the caller may ask of a node now, given the reservations that cover
// it.
func (s *Server) nodeActions(c *caller, n query.Node, reserved []quota.Reservation) []page.Action {
	if !s.Actions || !c.Operator {
		return nil
	}
	closed := slices.ContainsFunc(reserved, func(r quota.Reservation) bool { return r.Name == closing(n.Cluster, n.Name) })
	var all []page.Action
	for _, change := range nodeChanges() {
		if (change.name == "open") == closed {
			all = append(all, page.Action{Name: change.name, Label: change.label, Link: page.NodeLink(n.Cluster, n.Name) + "/" + change.name})
		}
	}
	return all
}

// mostHours bounds how long a node is closed.
const mostHours = 24 * 90

// changeNode closes a node, or opens it again.
func (s *Server) changeNode(ctx context.Context, api *overhttp.Client, n query.Node, name string, form url.Values) error {
	if name == "open" {
		return api.Unreserve(ctx, closing(n.Cluster, n.Name))
	}
	hours, err := strconv.Atoi(form.Get("hours"))
	if err != nil || hours < 1 || hours > mostHours {
		return refuse(http.StatusBadRequest, "Hours %.20q: want a whole number from 1 to %d.", form.Get("hours"), mostHours)
	}
	from := s.Now().UTC().Truncate(time.Second)
	return api.Reserve(ctx, quota.Reservation{
		Name: closing(n.Cluster, n.Name), Cluster: n.Cluster, Nodes: []string{n.Name}, From: from, Until: from.Add(time.Duration(hours) * time.Hour),
		Evict: name == "empty", Why: form.Get("why"),
	})
}

func loadNodes(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	values := r.URL.Query()
	filter := page.NodeFilter{Cluster: values.Get("cluster"), State: values.Get("state"), Name: values.Get("name"), From: values.Get("from")}
	if filter.State != "" && !slices.Contains(filter.States(), filter.State) {
		return content{}, refuse(http.StatusBadRequest, "state=%.20q: want one of %s.", filter.State, strings.Join(filter.States(), ", "))
	}
	answer, err := s.selectNodes(ctx, c, filter.Request())
	return content{title: "Nodes", model: page.MakeNodes(answer, filter, s.Now()), form: "nodes-form", formModel: filter}, err
}

func loadNode(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	node, err := s.node(ctx, r, c)
	if err != nil {
		return content{}, err
	}
	reserved, err := s.reservations(ctx, c, node)
	model := page.MakeNode(node, reserved, s.nodeActions(c, node, reserved), s.Now())
	return content{title: "Node " + node.Name, model: model, form: "asked", formModel: asked(r)}, err
}

// node is the node that the address names.
func (s *Server) node(ctx context.Context, r *http.Request, c *caller) (query.Node, error) {
	cluster, name := r.PathValue("cluster"), r.PathValue("node")
	answer, err := s.selectNodes(ctx, c, query.NodesRequest{Cluster: cluster, Name: name, Holders: true})
	if err == nil && len(answer.Nodes) != 1 {
		err = refuse(http.StatusNotFound, "There is no node %.80q in cluster %.80q.", name, cluster)
	}
	if err != nil {
		return query.Node{}, err
	}
	return answer.Nodes[0], nil
}
