package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/console/internal/page"
)

// views are the pages, by their paths.
func views() map[string]view {
	return map[string]view{
		"/{$}":                     {template: "overview", every: 3 * time.Second, load: loadOverview},
		"/queues":                  {template: "queues-page", every: 3 * time.Second, load: loadQueues},
		"/queues/{queue}":          {template: "queue", every: 2 * time.Second, load: loadQueue},
		"/workloads":               {template: "workloads", every: 2 * time.Second, load: loadWorkloads},
		"/workloads/{id}":          {template: "workload", every: time.Second, load: loadWorkload},
		"/workloads/{id}/manifest": {template: "manifest", load: loadManifest},
		"/nodes":                   {template: "nodes", every: 3 * time.Second, load: loadNodes},
		"/nodes/{cluster}/{node}":  {template: "node", every: 3 * time.Second, load: loadNode},
		page.DeadLettersLink:       {template: "dead-letters", every: 15 * time.Second, load: loadDeadLetters},
		"/usage":                   {template: "usage", every: time.Minute, load: loadUsage},
		"/decisions":               {template: "decisions", load: loadDecisions},
		"/whatif":                  {template: "whatif", load: loadWhatIf},
	}
}

func loadOverview(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	activity := s.beginActivity(ctx, r, c, "")
	load := s.makeTenants
	if c.Operator {
		load = s.makeOperators
	}
	model, err := load(ctx, r, c)
	of := content{title: "Overview", form: "asked", formModel: asked(r)}
	if err != nil {
		return of, err
	}
	model.Activity, err = activity()
	of.model = model
	return of, err
}

// makeTenants makes the overview of a tenant, without charts.
func (s *Server) makeTenants(ctx context.Context, _ *http.Request, c *caller) (page.Overview, error) {
	waiting := begin(func() (httpapi.WorkloadsPage, error) {
		return s.workloads(ctx, c, query.WorkloadsRequest{Phases: []workload.Phase{workload.Queued}, Limit: query.MaxPage})
	})
	queues, err := s.queues(ctx, c)
	if err != nil {
		return page.Overview{}, err
	}
	records, err := waiting()
	return page.ForTenant(queues.Queues, records.Workloads, s.Now()), err
}

// makeOperators makes the overview of an operator, without charts. Its parts are asked for at
// once: each reads all nodes, or all workloads.
func (s *Server) makeOperators(ctx context.Context, r *http.Request, c *caller) (page.Overview, error) {
	patient := ctx // the updates wait for the map
	if !isLive(r) {
		var cancel context.CancelFunc
		patient, cancel = context.WithTimeout(ctx, s.Patience)
		defer cancel()
	}
	ofNodes := begin(func() ([]query.Node, error) { return s.nodes(patient, c) })
	ofStatus := begin(func() (query.StatusAnswer, error) { return s.status(ctx, c) })
	queues, err := s.queues(ctx, c)
	if err != nil {
		return page.Overview{}, err
	}
	status, err := ofStatus()
	if err != nil {
		return page.Overview{}, err
	}
	nodes, err := ofNodes()
	model := page.ForOperator(status, nodes, queues.Queues, s.RackLabel, s.Now())
	for i, cluster := range status.Clusters {
		model.Clusters[i].Actions = s.clusterActions(c, cluster)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		model.MapFollows, err = true, nil
	}
	return model, err
}

func loadQueues(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	from, err := rowOf(r)
	if err != nil {
		return content{}, err
	}
	answer, err := s.queues(ctx, c)
	return content{title: "Queues", model: page.MakeQueues(answer, from, s.Now())}, err
}

// rowOf is the row with which a page of a list begins.
func rowOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("from")
	if text == "" {
		return 0, nil
	}
	row, err := strconv.Atoi(text)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "from=%.20q: want a number.", text)
	}
	return row, nil
}

func loadQueue(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	q, namespace, err := s.queue(ctx, r, c)
	if err != nil {
		return content{}, err
	}
	charts := s.beginActivity(ctx, r, c, q.Name)
	only := ""
	if len(q.Namespaces) == 1 {
		only = q.Namespaces[0]
	}
	after := r.URL.Query().Get("after")
	if after != "" && uuid.Validate(after) != nil {
		return content{}, refuse(http.StatusBadRequest, "after=%.40q: want the id of a workload.", after)
	}
	lives := begin(func() (httpapi.WorkloadsPage, error) {
		return s.workloads(ctx, c, query.WorkloadsRequest{Queue: q.Name, Namespace: only, Phases: holding(), Limit: page.PageRows})
	})
	waiting, err := s.workloads(ctx, c, query.WorkloadsRequest{
		Queue: q.Name, Namespace: only, Phases: []workload.Phase{workload.Queued}, Order: query.OrderPosition, Limit: page.PageRows, AfterID: workload.ID(after),
	})
	if err != nil {
		return content{}, err
	}
	live, err := lives()
	if err != nil {
		return content{}, err
	}
	activity, err := charts()
	next := ""
	if waiting.Next != "" {
		values := url.Values{"after": {string(waiting.Next)}}
		if namespace != "" {
			values.Set("namespace", namespace)
		}
		next = "/queues/" + url.PathEscape(q.Name) + "?" + values.Encode()
	}
	model := page.MakeQueue(q, namespace, waiting.Workloads, live.Workloads, next, live.Next != "", s.queueActions(c, q, namespace), s.Now())
	model.Activity = activity
	return content{title: "Queue " + q.Name, model: model, form: "asked", formModel: asked(r)}, err
}

// queue is the queue that the address names: in the one namespace that it gives, where several
// have its name.
func (s *Server) queue(ctx context.Context, r *http.Request, c *caller) (q query.Queue, namespace string, err error) {
	answer, err := s.queues(ctx, c)
	if err != nil {
		return q, "", err
	}
	name, namespace := r.PathValue("queue"), r.URL.Query().Get("namespace")
	found := query.Named(answer.Queues, name, namespace)
	switch {
	case len(found) > 1:
		return q, "", refuse(http.StatusBadRequest, "Queues of several namespaces have the name %.80q: %.400s. Choose one of them on the page of queues.",
			name, strings.Join(query.NamespacesOf(found), ", "))
	case len(found) == 0:
		return q, "", refuse(http.StatusNotFound, "There is no queue %.80q that you may see.", name)
	}
	return found[0], namespace, nil
}

func loadWorkloads(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	values := r.URL.Query()
	filter := page.Filter{
		Queue: values.Get("queue"), Namespace: values.Get("namespace"), Name: values.Get("name"), Phase: values.Get("phase"), Labels: values.Get("labelSelector"),
	}
	request := query.WorkloadsRequest{
		Queue: filter.Queue, Namespace: filter.Namespace, Name: filter.Name, Limit: page.PageRows, AfterID: workload.ID(values.Get("after")),
	}
	if filter.Phase != "" {
		if !slices.Contains(workload.Phases(), workload.Phase(filter.Phase)) {
			return content{}, refuse(http.StatusBadRequest, "There is no phase %.40q.", filter.Phase)
		}
		request.Phases = []workload.Phase{workload.Phase(filter.Phase)}
	}
	if filter.Waiting() {
		request.Order = query.OrderPosition
	}
	if filter.Labels != "" {
		var err error
		if request.Labels, err = query.ParseSelector(filter.Labels); err != nil {
			return content{}, refuse(http.StatusBadRequest, "%v", err)
		}
	}
	answer, err := s.workloads(ctx, c, request)
	first, next := "", ""
	if request.AfterID != "" {
		values.Del("after")
		first = "/workloads?" + values.Encode()
	}
	if answer.Next != "" {
		values.Set("after", string(answer.Next))
		next = "/workloads?" + values.Encode()
	}
	model := page.MakeWorkloads(filter, answer.Workloads, first, next, s.Now())
	return content{title: "Workloads", model: model, form: "workloads-form", formModel: filter}, err
}

func loadWorkload(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	one, err := s.workload(ctx, c, workload.ID(r.PathValue("id")))
	if err != nil {
		return content{}, err
	}
	patient, cancel := context.WithTimeout(ctx, s.patience(r)) // an explanation may wait for others
	defer cancel()
	explained, notExplained := s.explanation(patient, c, one.Record)
	model := page.MakeWorkload(one, explained, notExplained, s.workloadActions(c, one.Record), s.Elsewhere, s.Now())
	if c.Operator {
		model.LinkDecisions()
	}
	return content{title: one.Title(), model: model, form: "asked", formModel: asked(r)}, nil
}

func loadManifest(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	one, err := s.workload(ctx, c, workload.ID(r.PathValue("id")))
	if err != nil {
		return content{}, err
	}
	answer, err := s.manifest(ctx, c, one.ID)
	if err != nil {
		return content{}, err
	}
	model, err := page.MakeManifest(one.Record, answer)
	return content{title: "Manifest of " + one.Title(), model: model}, err
}
