package overhttp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"muster.dev/muster/pkg/message/query"
)

// nodes returns the nodes of a request, a query.NodesRequest, as the server answers.
func (c *Client) nodes(ctx context.Context, data []byte) ([]byte, error) {
	var r query.NodesRequest
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	parameters := url.Values{}
	for name, value := range map[string]string{"cluster": r.Cluster, "name": r.Name, "prefix": r.Prefix, "state": r.State} {
		if value != "" {
			parameters.Set(name, value)
		}
	}
	if r.From != (query.NodeName{}) {
		parameters.Set("from", r.From.Cluster+"/"+r.From.Name)
	}
	if r.Limit > 0 {
		parameters.Set("limit", strconv.Itoa(r.Limit))
	}
	if r.Holders {
		parameters.Set("holders", "true")
	}
	var content json.RawMessage
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/nodes", parameters: parameters}, &content)
	return content, err
}
