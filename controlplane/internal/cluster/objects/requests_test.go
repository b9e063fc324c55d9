package objects

import (
	"context"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
)

func TestLatestRequest(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithScheme(conn.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for uid, after := range []time.Duration{0, time.Hour, time.Minute} {
				item := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
					UID: types.UID(strconv.Itoa(uid)), CreationTimestamp: metav1.NewTime(first.Add(after)),
				}}
				list.(*metav1.PartialObjectMetadataList).Items = append(list.(*metav1.PartialObjectMetadataList).Items,
					item) //nolint:forcetypeassert // only this type is read
			}
			return nil
		},
	}).Build()
	_, put, err := requests.Read(t.Context(), c)
	g.Expect(err).NotTo(HaveOccurred())
	s := NewState(clock.RealClock{})
	put(s)
	g.Expect(s.latestRequest).To(Equal(types.UID("1")))
}
