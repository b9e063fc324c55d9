package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// PageSize is how many objects of a list are read at a time: 200 Nodes have 3 MiB, of [listAnswer].
	PageSize = 200
	// MaxItems is how many objects of a list are read at most: more than the Nodes of the largest cluster (2,000), while everybody with the token of the bootstrapper makes as many
	// certificate requests as they like.
	MaxItems = 5000
)

// EachPage lists objects page by page; next makes the list that a page is read into. It returns the version of the list, which all pages have, and whether that were all objects.
func EachPage[L client.ObjectList](ctx context.Context, c client.Reader, next func() L, take func(L), options ...client.ListOption) (version string, complete bool, err error) {
	token := ""
	for range MaxItems / PageSize {
		page := next()
		if err := c.List(ctx, page, append(options[:len(options):len(options)], client.Limit(PageSize), client.Continue(token))...); err != nil {
			return "", false, err
		}
		take(page)
		version = page.GetResourceVersion()
		if token = page.GetContinue(); token == "" {
			return version, true, nil
		}
	}
	return version, false, nil
}

// EachNode reads all Nodes of a workload cluster, and returns the version from which on they are to be watched.
func EachNode(ctx context.Context, c client.Reader, take func(*corev1.Node)) (string, error) {
	version, complete, err := EachPage(ctx, c, func() *corev1.NodeList { return &corev1.NodeList{} }, func(page *corev1.NodeList) {
		for i := range page.Items {
			take(&page.Items[i])
		}
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot list the Nodes of the workload cluster: %w", err)
	case !complete:
		return "", fmt.Errorf("the workload cluster has more than %d Nodes", MaxItems)
	}
	return version, nil
}
