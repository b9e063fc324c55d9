package assistedsim

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

func TestStoppedServiceServesNoRequest(t *testing.T) {
	g := NewWithT(t)
	s, err := New(&rest.Config{}, Options{})
	g.Expect(err).NotTo(HaveOccurred())
	answers := map[string]func() error{
		"an image":       func() error { _, err := s.Image(t.Context(), "id", ""); return err },
		"a registration": func() error { return s.Register(t.Context(), hosts.Agent{}) },
		"a host":         func() error { _, err := s.Next(t.Context(), hosts.Agent{}); return err },
		"progress":       func() error { return s.Progress(t.Context(), hosts.Report{}) },
		"a cluster":      func() error { return s.Finalize(t.Context(), "id") },
	}
	download := func() int {
		answer := httptest.NewRecorder()
		s.answering(s.downloads()).ServeHTTP(answer,
			httptest.NewRequest(http.MethodGet, "/api/assisted-install/v2/infra-envs/id/downloads/files", nil))
		return answer.Code
	}
	for what, answer := range answers {
		g.Expect(answer()).To(MatchError(hosts.ErrNotFound), what)
	}
	g.Expect(download()).To(Equal(http.StatusNotFound))

	s.Leave()
	for what, answer := range answers {
		g.Expect(answer()).To(MatchError(errAway), what)
	}
	g.Expect(download()).To(Equal(http.StatusServiceUnavailable))
	reconciled := make(chan struct{})
	go func() {
		_, _ = s.present(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			close(reconciled)
			return reconcile.Result{}, nil
		})(t.Context(), reconcile.Request{})
	}()
	g.Consistently(reconciled).WithTimeout(50 * time.Millisecond).ShouldNot(BeClosed())
	s.Return()
	g.Eventually(reconciled).Should(BeClosed(), "it reconciles the changes of the meantime")
	for what, answer := range answers {
		g.Expect(answer()).To(MatchError(hosts.ErrNotFound), what)
	}
}
