package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/console/internal/page"
	"muster.dev/muster/services/internal/client/overhttp"
	"muster.dev/muster/services/internal/client/trial"
)

func loadWhatIf(ctx context.Context, s *Server, r *http.Request, c *caller) (content, error) {
	form := whatIfForm(r.URL.Query())
	form.Operator = c.Operator
	of := content{title: "What if", form: "whatif-form", formModel: form}
	request, err := s.whatIfRequest(ctx, c, form)
	var wrong *refusal
	if errors.As(err, &wrong) { // the form stays, so that it can be mended
		of.model = page.WhatIf{Problem: wrong.text}
		return of, nil
	}
	if err != nil {
		return of, err
	}
	if request == nil {
		of.model = page.WhatIf{}
		return of, nil
	}
	answer, err := ask(ctx, s.answers, c.asks(fmt.Sprintf("whatif %+v", form)), freshWhatIf, func(ctx context.Context) (query.WhatIfAnswer, error) {
		return query.NewClientOver(c.api).Patient().WhatIf(ctx, *request)
	})
	if status := overhttp.StatusOf(err); status >= 400 && status < 500 && status != http.StatusUnauthorized {
		of.model = page.WhatIf{Problem: err.Error()}
		return of, nil
	}
	of.model = page.MakeWhatIf(answer, s.Now())
	return of, err
}

func whatIfForm(v url.Values) page.WhatIfForm {
	return page.WhatIfForm{
		Workload: v.Get("workload"), Priority: v.Get("priority"), Queue: v.Get("queue"), Pods: v.Get("pods"), Requests: v.Get("requests"),
		Drain: v.Get("drain"), Cluster: v.Get("cluster"), Label: v.Get("label"), Like: v.Get("like"), Shape: v.Get("shape"), ShapeLabels: v.Get("shapelabels"), Count: v.Get("count"),
		Queues: lines(v.Get("queues")), Manifests: lines(v.Get("manifests")),
		To: v.Get("to"), Namespace: v.Get("namespace"), RunTime: v.Get("runtime"), Submitter: v.Get("submitter"),
	}
}

// lines are those of a text as a browser sends it.
func lines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// whatIfRequest reads the change of a form; nil when none was given.
func (s *Server) whatIfRequest(ctx context.Context, c *caller, form page.WhatIfForm) (*query.WhatIfRequest, error) {
	r := &query.WhatIfRequest{}
	for _, text := range listed(form.Drain) {
		name, err := nodeName(text)
		if err != nil {
			return nil, err
		}
		r.Drain = append(r.Drain, name)
	}
	if form.Cluster != "" || form.Label != "" {
		set := query.NodeSet{Cluster: form.Cluster}
		var has bool
		if set.Label, set.Value, has = strings.Cut(form.Label, "="); form.Label != "" && !has {
			return nil, refuse(http.StatusBadRequest, "Label %.80q: want a label with its value, such as rack=r7.", form.Label)
		}
		r.DrainAll = append(r.DrainAll, set)
	}
	if form.Like != "" || form.Shape != "" {
		added, err := addedNodes(form)
		if err != nil {
			return nil, err
		}
		r.AddNodes = append(r.AddNodes, added)
	}
	if form.Workload != "" && form.Priority+form.Queue+form.Pods+form.Requests != "" {
		change, err := s.workloadChange(ctx, c, form)
		if err != nil {
			return nil, err
		}
		r.Workloads = append(r.Workloads, change)
	}
	if strings.TrimSpace(form.Queues) != "" {
		r.QueuesFile = form.Queues
	}
	if strings.TrimSpace(form.Manifests) != "" {
		var err error
		if r.Submit, err = submitted(form); err != nil {
			return nil, err
		}
	}
	if len(r.Drain)+len(r.DrainAll)+len(r.AddNodes)+len(r.Workloads)+len(r.Submit) == 0 && r.QueuesFile == "" {
		return nil, nil
	}
	return r, nil
}

// submitted are the workloads of manifests.
func submitted(form page.WhatIfForm) ([]query.WhatIfSubmission, error) {
	options := trial.Options{Queue: form.To, Namespace: form.Namespace, Submitter: form.Submitter}
	if form.RunTime != "" {
		var err error
		if options.RunTime, err = time.ParseDuration(form.RunTime); err != nil || options.RunTime <= 0 {
			return nil, refuse(http.StatusBadRequest, "Run time %.32q: want a time such as 90m or 6h.", form.RunTime)
		}
	}
	all, err := trial.Read([]byte(form.Manifests), options)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "Manifests: %.2000v.", err)
	}
	return all, nil
}

// addedNodes are like a present node, or of a shape.
func addedNodes(form page.WhatIfForm) (added query.NodesLike, err error) {
	if added.Count, err = strconv.Atoi(form.Count); err != nil {
		return added, refuse(http.StatusBadRequest, "Number of nodes %.20q: want a whole number.", form.Count)
	}
	if form.Like != "" {
		added.Like, err = nodeName(form.Like)
		return added, err
	}
	cluster, amounts, has := strings.Cut(form.Shape, ":")
	if !has {
		cluster, amounts = "", form.Shape
	}
	added.Shape = &query.NodeShape{Cluster: cluster, Labels: map[string]string{}}
	if added.Shape.Allocatable, err = query.ParseAmounts(amounts); err != nil {
		return added, refuse(http.StatusBadRequest, "Resources of the nodes: %v.", err)
	}
	for _, text := range listed(form.ShapeLabels) {
		label, value, has := strings.Cut(text, "=")
		if !has {
			return added, refuse(http.StatusBadRequest, "Label %.80q: want a label with its value, such as pool=a100.", text)
		}
		added.Shape.Labels[label] = value
	}
	return added, nil
}

func nodeName(text string) (query.NodeName, error) {
	cluster, name, found := strings.Cut(text, "/")
	if !found || cluster == "" || name == "" {
		return query.NodeName{}, refuse(http.StatusBadRequest, "Node %.80q: want CLUSTER/NODE.", text)
	}
	return query.NodeName{Cluster: cluster, Name: name}, nil
}

// workloadChange is the change of a waiting workload, or of the priority of one that runs, which is
// found by its id or name.
func (s *Server) workloadChange(ctx context.Context, c *caller, form page.WhatIfForm) (change query.WorkloadChange, err error) {
	phases := []workload.Phase{workload.Queued}
	if form.Queue+form.Pods+form.Requests == "" {
		phases = append(phases, holding()...)
	}
	if change.ID, err = s.changedWorkload(ctx, c, form.Workload, phases); err != nil {
		return change, err
	}
	change.Queue = form.Queue
	if form.Priority != "" {
		value, err := strconv.ParseInt(form.Priority, 10, 32)
		if err != nil {
			return change, refuse(http.StatusBadRequest, "Priority %.20q: want a whole number of 32 bits.", form.Priority)
		}
		priority := int32(value)
		change.Priority = &priority
	}
	for _, text := range listed(form.Pods) {
		name, number, _ := strings.Cut(text, "=")
		count, err := strconv.Atoi(number)
		if err != nil {
			return change, refuse(http.StatusBadRequest, "Pods %.80q: want POD SET=NUMBER, such as workers=8.", text)
		}
		change.Pods = append(change.Pods, query.PodCount{PodSet: name, Count: count})
	}
	if form.Requests != "" {
		set, amounts, _ := strings.Cut(form.Requests, ":")
		of, err := query.ParseAmounts(amounts)
		if err != nil {
			return change, refuse(http.StatusBadRequest, "Requests %.80q: want POD SET:RESOURCE=AMOUNT,..., such as workers:nvidia.com/gpu=4.", form.Requests)
		}
		change.Requests = []query.PodRequests{{PodSet: set, Amounts: of}}
	}
	return change, nil
}

func (s *Server) changedWorkload(ctx context.Context, c *caller, name string, phases []workload.Phase) (workload.ID, error) {
	if uuid.Validate(name) == nil {
		return workload.ID(name), nil
	}
	namespace, short, found := strings.Cut(name, "/")
	if !found {
		namespace, short = "", name
	}
	answer, err := s.workloads(ctx, c, query.WorkloadsRequest{Name: short, Namespace: namespace, Phases: phases, Limit: 2})
	switch {
	case err != nil:
		return "", err
	case len(answer.Workloads) == 0:
		return "", refuse(http.StatusNotFound, "No workload %.80q waits, or runs if only its priority is changed, that you may see.", name)
	case len(answer.Workloads) > 1:
		return "", refuse(http.StatusBadRequest, "There are several workloads %.80q: give the id of one, which its page has.", name)
	}
	return answer.Workloads[0].ID, nil
}
