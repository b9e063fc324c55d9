package kube

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// PageSize is how many objects of a kind are read at a time to fill a cache. A page of the largest kind,
// Agent, takes about 10 MiB until its objects are reduced.
const PageSize = 200

// NewInformer returns an informer that fills its cache page by page, and reduces each page by its transform
// before it reads the next page. A single list would be held in memory as a whole, in several forms.
// Streaming objects one by one takes both ends twice the processor time (Kubernetes 1.34).
func NewInformer(
	source toolscache.ListerWatcher,
	kind runtime.Object,
	resync time.Duration,
	indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	p := &pages{ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(source)}
	return &pagedInformer{SharedIndexInformer: toolscache.NewSharedIndexInformer(p, kind, resync, indexers), pages: p}
}

// NewInformerByField returns an informer like NewInformer, for a manager that lists by fields, or lists all
// objects. Listing a namespace as a whole is an error. The index for that takes 200 bytes for each kind in
// each namespace.
func NewInformerByField(
	source toolscache.ListerWatcher,
	kind runtime.Object,
	resync time.Duration,
	indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	fields := maps.Clone(indexers)
	delete(fields, toolscache.NamespaceIndex)
	return NewInformer(source, kind, resync, fields)
}

type pagedInformer struct {
	toolscache.SharedIndexInformer
	pages *pages
}

// SetTransform implements SharedInformer. The informer applies the transform to the reduced objects a second
// time.
func (i *pagedInformer) SetTransform(transform toolscache.TransformFunc) error {
	i.pages.transform = transform
	return i.SharedIndexInformer.SetTransform(transform)
}

// pages lists in pages. Reflectors accept any resource version ("0"), for which API servers do not paginate.
type pages struct {
	toolscache.ListerWatcherWithContext
	transform toolscache.TransformFunc
}

// IsWatchListSemanticsUnSupported has the name that reflectors check. From client-go v0.35 on, they would otherwise stream
// objects one by one.
func (p *pages) IsWatchListSemanticsUnSupported() bool { return true }

// List implements ListerWatcher.
func (p *pages) List(options metav1.ListOptions) (runtime.Object, error) {
	return p.ListWithContext(context.Background(), options)
}

// Watch implements ListerWatcher.
func (p *pages) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return p.WatchWithContext(context.Background(), options)
}

// ListWithContext implements ListerWatcherWithContext. client-go requests page after page.
func (p *pages) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Limit > 0 {
		options.Limit = PageSize
		if options.ResourceVersion == "0" {
			options.ResourceVersion = ""
		}
	}
	page, err := p.ListerWatcherWithContext.ListWithContext(ctx, options)
	if err != nil || p.transform == nil {
		return page, err
	}
	return p.reduce(page)
}

func (p *pages) reduce(page runtime.Object) (runtime.Object, error) {
	list, err := meta.ListAccessor(page)
	if err != nil {
		return nil, fmt.Errorf("cannot read a list: %w", err)
	}
	reduced := &metainternalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue()}}
	err = meta.EachListItemWithAlloc(page, func(item runtime.Object) error {
		kept, err := p.transform(item)
		if err != nil {
			return err
		}
		obj, ok := kept.(runtime.Object)
		if !ok {
			return fmt.Errorf("a transform returns %T for %T", kept, item)
		}
		reduced.Items = append(reduced.Items, obj)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot reduce the listed objects: %w", err)
	}
	return reduced, nil
}
