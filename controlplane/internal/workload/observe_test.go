package workload

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// connected is the cache of connections to one cluster that answers.
type connected struct {
	clustercache.ClusterCache
	reader client.Reader
}

func (c connected) GetReader(context.Context, client.ObjectKey) (client.Reader, error) {
	return c.reader, nil
}

func (connected) GetHealthCheckingState(context.Context, client.ObjectKey) clustercache.HealthCheckingState {
	return clustercache.HealthCheckingState{LastProbeSuccessTime: time.Now()}
}

func (connected) Watch(context.Context, client.ObjectKey, clustercache.Watcher) error { return nil }

func (connected) GetRESTConfig(context.Context, client.ObjectKey) (*rest.Config, error) {
	return nil, clustercache.ErrClusterNotConnected
}

// The API server answers its probes, but Nodes cannot be listed: with rights that were taken away, for example.
func TestSinceWhenAClusterCannotBeRead(t *testing.T) {
	g := NewWithT(t)
	forbidden := errors.New("forbidden")
	nodes := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ofNodes := list.(*corev1.NodeList); ofNodes && forbidden != nil {
				return forbidden
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	clusters := &Clusters{now: time.Now, cache: connected{reader: nodes}, kubeconfigs: &kubeconfigReader{}}
	cluster := client.ObjectKey{Namespace: "lab", Name: "c1"}

	first, err := clusters.Observe(t.Context(), cluster)
	g.Expect(err).To(MatchError(forbidden))
	g.Expect(first.Connected).To(BeTrue())
	g.Expect(first.UnreadSince).To(BeTemporally("~", time.Now(), time.Minute))
	again, err := clusters.Observe(t.Context(), cluster)
	g.Expect(err).To(MatchError(forbidden))
	g.Expect(again.UnreadSince).To(Equal(first.UnreadSince), "the first time counts")

	forbidden = nil
	read, err := clusters.Observe(t.Context(), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.UnreadSince).To(BeZero())
}
