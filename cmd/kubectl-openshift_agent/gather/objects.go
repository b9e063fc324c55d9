package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

const (
	// pageSize is the number of objects of one request.
	pageSize = 200
	// maxObjects is the largest number of objects of a kind in an archive.
	maxObjects = 4000
	// requestTimeout is the time for one request.
	requestTimeout = time.Minute
)

var errNoKind = errors.New(snapshot.NoKind)

// readObjects reads all kinds in the namespace of the cluster. A kind that cannot be read is recorded.
func (g *gatherer) readObjects(ctx context.Context) map[string][]unstructured.Unstructured {
	objects := map[string][]unstructured.Unstructured{}
	for _, k := range kinds() {
		found, err := g.listKind(ctx, k, g.Namespace)
		if isNotServed(err) {
			err = errNoKind
		}
		if err != nil {
			g.gap(k.title(), err)
		}
		if len(found) > 0 {
			objects[k.title()] = found
		}
	}
	return objects
}

// listKind lists a kind in the first version that the API server serves.
func (g *gatherer) listKind(ctx context.Context, k kind, namespace string) (found []unstructured.Unstructured, err error) {
	for _, version := range k.versions {
		options := []client.ListOption{client.InNamespace(namespace)}
		if k.clusterScoped {
			options = nil
		}
		if found, err = g.list(ctx, k, version, options...); !isNotServed(err) {
			return found, err
		}
	}
	return found, err
}

// isNotServed reports whether the API server does not serve a kind.
func isNotServed(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err)
}

// list lists a kind page by page. It returns the objects that were read before an error.
func (g *gatherer) list(ctx context.Context, k kind, version string, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	var found []unstructured.Unstructured
	next := ""
	for {
		page, more, err := g.page(ctx, k, version, append(slices.Clone(options), client.Limit(pageSize), client.Continue(next))...)
		if err != nil {
			return found, err
		}
		found = append(found, page...)
		if next = more; next == "" {
			return found, nil
		}
		if len(found) >= maxObjects {
			return found, fmt.Errorf("more than %d objects exist. The archive contains the first %d", maxObjects, len(found))
		}
	}
}

// page reads one page of a kind, and returns where the next begins.
func (g *gatherer) page(
	ctx context.Context, k kind, version string, options ...client.ListOption,
) ([]unstructured.Unstructured, string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("the API server did not answer within %s", requestTimeout))
	defer cancel()
	gvk := k.version(version)
	gvk.Kind += "List"
	if k.metadataOnly {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		if err := g.API.List(ctx, list, options...); err != nil {
			return nil, "", errors.Join(err, context.Cause(ctx))
		}
		found := make([]unstructured.Unstructured, 0, len(list.Items))
		for i := range list.Items {
			found = append(found, describe(k.version(version), &list.Items[i]))
		}
		return found, list.GetContinue(), nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	if err := g.API.List(ctx, list, options...); err != nil {
		return nil, "", errors.Join(err, context.Cause(ctx))
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(k.version(version))
		list.Items[i].SetManagedFields(nil)
	}
	return list.Items, list.GetContinue(), nil
}

// causeOf returns why a request failed, without the request.
func causeOf(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return snapshot.NoPermission
	case apierrors.IsNotFound(err):
		return "it no longer exists"
	}
	return strings.Join(strings.Fields(assisted.RedactURLs(err.Error())), " ")
}
