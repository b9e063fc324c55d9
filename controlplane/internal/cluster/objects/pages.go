// Package objects reads the resources of a workload cluster, and keeps in a State only the facts in them. Lists are read in
// pages, and all texts are limited.
package objects

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// PageSize is the number of objects in a page of a list. 200 Nodes have 3 MiB, of the 32 MiB of
	// [listResponse].
	PageSize = 200
	// MaxItems is the largest number of objects that are read of a list. The largest cluster has 2,000 Nodes.
	// Every client with the token of the bootstrapper can create any number of certificate requests.
	MaxItems = 5000
)

// EachPage lists objects page by page. next returns the list into which a page is read. EachPage returns the
// version of the list, which all pages share, and whether all objects were read.
func EachPage[L client.ObjectList](ctx context.Context, c client.Reader, next func() L, take func(L),
	options ...client.ListOption,
) (version string, complete bool, err error) {
	token := ""
	for range MaxItems / PageSize {
		page := next()
		if err := c.List(ctx, page, append(options[:len(options):len(options)], client.Limit(PageSize),
			client.Continue(token))...); err != nil {
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

// EachNode reads all Nodes of a workload cluster, and returns the version at which to start their watch.
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
