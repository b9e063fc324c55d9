package kubetest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Watches runs the watches of a controller without an API server. The controller reconciles nothing: its requests are
// recorded.
type Watches struct {
	cache *watchedCache
	queue *recordingQueue
}

// NewWatches starts a controller in a manager that has the scheme and the objects of c and serves the kinds. The manager
// ends with the context. A manager that fails watches nothing.
func NewWatches(
	ctx context.Context,
	c client.Client,
	setup func(context.Context, manager.Manager, controller.Options) error,
	kinds ...schema.GroupVersionKind,
) (*Watches, error) {
	w := &Watches{
		cache: &watchedCache{FakeInformers: &informertest.FakeInformers{Scheme: c.Scheme()}, informers: map[schema.GroupVersionKind]*informer{}},
		queue: &recordingQueue{},
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range kinds {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	mgr, err := manager.New(&rest.Config{}, manager.Options{
		Scheme:         c.Scheme(),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return w.cache, nil },
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return c, nil },
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Controller:     config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create a manager: %w", err)
	}
	if err := setup(ctx, mgr, controller.Options{NewQueue: w.queue.start}); err != nil {
		return nil, err
	}
	go func() { _ = mgr.Start(ctx) }()
	return w, nil
}

// Created returns the reconciles that the creation of an object requests. The watch begins some time after NewWatches.
func (w *Watches) Created(obj client.Object) ([]ctrl.Request, error) {
	kind, err := apiutil.GVKForObject(obj, w.cache.Scheme)
	if err != nil {
		return nil, err
	}
	w.queue.take()
	w.cache.informerOf(kind).Add(obj)
	return w.queue.take(), nil
}

// Kinds returns the watched kinds.
func (w *Watches) Kinds() []string { return w.cache.kinds() }

// watchedCache has an informer for each watched kind. Unlike FakeInformers it has one for each kind of metadata.
type watchedCache struct {
	*informertest.FakeInformers

	mu        sync.Mutex
	informers map[schema.GroupVersionKind]*informer
}

// GetInformer implements cache.Informers.
func (c *watchedCache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	kind, err := apiutil.GVKForObject(obj, c.Scheme)
	if err != nil {
		return nil, err
	}
	return c.informerOf(kind), nil
}

func (c *watchedCache) informerOf(kind schema.GroupVersionKind) *informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.informers[kind] == nil {
		c.informers[kind] = &informer{}
	}
	return c.informers[kind]
}

func (c *watchedCache) kinds() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kinds []string
	for kind, informer := range c.informers {
		if informer.isWatched() {
			kinds = append(kinds, kind.Kind)
		}
	}
	return kinds
}

// informer is a FakeInformer for several goroutines.
type informer struct {
	controllertest.FakeInformer

	mu      sync.Mutex
	watched bool
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i *informer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.watched = true
	return i.FakeInformer.AddEventHandlerWithOptions(handler, options)
}

// Add sends the creation of an object to all handlers.
func (i *informer) Add(obj client.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.FakeInformer.Add(obj)
}

func (i *informer) isWatched() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.watched
}

// recordingQueue records the requests, and gives none to a reconciler.
type recordingQueue struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]

	mu       sync.Mutex
	requests []ctrl.Request
}

func (q *recordingQueue) start(
	_ string, limiter workqueue.TypedRateLimiter[ctrl.Request],
) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	q.TypedRateLimitingInterface = workqueue.NewTypedRateLimitingQueue(limiter)
	return q
}

// take returns the requests since the last call.
func (q *recordingQueue) take() []ctrl.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := slices.Clone(q.requests)
	q.requests = nil
	return taken
}

// Add implements workqueue.TypedInterface.
func (q *recordingQueue) Add(request ctrl.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = append(q.requests, request)
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *recordingQueue) AddAfter(request ctrl.Request, _ time.Duration) { q.Add(request) }

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *recordingQueue) AddRateLimited(request ctrl.Request) { q.Add(request) }
