package kube_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// server paginates like an API server: it returns all objects at once for resource version "0".
type server struct {
	objects int
	// expires is the number of the request whose page has expired; 0 is none.
	expires  int
	requests []metav1.ListOptions
	// reduced is the number of reduced objects at each request.
	reduced []int
	total   *int
}

func (s *server) list(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.requests, s.reduced = append(s.requests, options), append(s.reduced, *s.total)
	if s.expires > 0 && len(s.requests) == s.expires {
		return nil, apierrors.NewResourceExpired("too old")
	}
	from, _ := strconv.Atoi(options.Continue)
	to := s.objects
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	if limited := from + int(options.Limit); options.Limit > 0 && options.ResourceVersion != "0" && limited < to {
		to, list.Continue = limited, strconv.Itoa(limited)
	}
	for i := from; i < to; i++ {
		list.Items = append(
			list.Items,
			corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i)}, Data: map[string]string{"large": "x"}},
		)
	}
	return list, nil
}

func (s *server) watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// filled runs an informer until its cache is filled.
func filled(t *testing.T, s *server, transform toolscache.TransformFunc) toolscache.Store {
	t.Helper()
	g := NewWithT(t)
	s.total = new(int)
	source := &toolscache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	informer := kube.NewInformer(source, &corev1.ConfigMap{}, 0, toolscache.Indexers{})
	g.Expect(informer.SetTransform(transform)).To(Succeed())
	go informer.RunWithContext(t.Context())
	g.Eventually(informer.HasSynced).WithTimeout(time.Minute).Should(BeTrue())
	return informer.GetStore()
}

// reducing drops the data of a ConfigMap, and counts.
func (s *server) reducing(in any) (any, error) {
	*s.total++
	configMap, ok := in.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("not a ConfigMap: %T", in)
	}
	return &corev1.ConfigMap{ObjectMeta: configMap.ObjectMeta}, nil
}

func TestCacheIsFilledPageByPage(t *testing.T) {
	g := NewWithT(t)
	s := &server{objects: 450}
	store := filled(t, s, s.reducing)
	g.Expect(store.List()).To(HaveLen(450))
	for _, obj := range store.List() {
		g.Expect(obj.(*corev1.ConfigMap).Data).To(BeEmpty())
	}
	g.Expect(s.reduced).To(Equal([]int{0, 200, 400}), "a page is reduced before the next one is requested")
}

func TestCacheWithoutTransformIsFilledPageByPage(t *testing.T) {
	g := NewWithT(t)
	s := &server{objects: 450}
	store := filled(t, s, nil)
	g.Expect(store.List()).To(HaveLen(450))
	g.Expect(s.requests).To(HaveLen(3))
	g.Expect(store.List()[0].(*corev1.ConfigMap).Data).NotTo(BeEmpty())
}

// The API server compacts old revisions. For an expired page the client requests all remaining objects at
// once.
func TestExpiredPageFallsBackToFullList(t *testing.T) {
	g := NewWithT(t)
	s := &server{objects: 450, expires: 2}
	store := filled(t, s, s.reducing)
	g.Expect(store.List()).To(HaveLen(450))
	g.Expect(store.List()[0].(*corev1.ConfigMap).Data).To(BeEmpty())
	g.Expect(s.requests).To(HaveLen(3))
	g.Expect(s.requests[2].Limit).To(BeZero())
}

// A hub has a namespace for each cluster, with a dozen kinds in it. The index would be as large as the cached
// objects of some kinds.
func TestInformerByFieldHasNoNamespaceIndex(t *testing.T) {
	g := NewWithT(t)
	indexers := toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc, "field:a": toolscache.MetaNamespaceIndexFunc}
	g.Expect(kube.NewInformer(&toolscache.ListWatch{}, &corev1.ConfigMap{}, 0, indexers).GetIndexer().GetIndexers()).To(HaveLen(2))
	g.Expect(kube.NewInformerByField(&toolscache.ListWatch{}, &corev1.ConfigMap{}, 0, indexers).GetIndexer().GetIndexers()).
		To(And(HaveLen(1), HaveKey("field:a")))
	g.Expect(indexers).To(HaveLen(2), "the indexers of the caller are not changed")
}

func TestFailingTransformBlocksSync(t *testing.T) {
	g := NewWithT(t)
	s := &server{objects: 1, total: new(int)}
	source := &toolscache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	informer := kube.NewInformer(source, &corev1.ConfigMap{}, 0, toolscache.Indexers{})
	g.Expect(informer.SetTransform(func(any) (any, error) { return nil, errors.New("cannot be reduced") })).To(Succeed())
	failed := make(chan error, 10)
	g.Expect(informer.SetWatchErrorHandler(func(_ *toolscache.Reflector, err error) { failed <- err })).To(Succeed())
	go informer.RunWithContext(t.Context())
	g.Eventually(failed).WithTimeout(time.Minute).Should(Receive(MatchError(ContainSubstring("cannot be reduced"))))
	g.Expect(informer.HasSynced()).To(BeFalse())
}
