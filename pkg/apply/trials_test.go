package apply

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// answering returns a client that counts the applied objects and answers each with the current value of answer.
func answering(answer *error, requests *int) client.WithWatch {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			*requests++
			return *answer
		},
	})
}

func TestTrialsRepeatRefusedContentAtLimitedRate(t *testing.T) {
	g := NewWithT(t)
	var answer error
	requests := 0
	c := answering(&answer, &requests)
	clock := testingclock.NewFakeClock(time.Now())
	trials := NewTrials(New(c, "test"), reconcile.NewBackoff(clock, time.Minute, 2*time.Minute))
	try := func(content string) (time.Duration, error) {
		again := reconcile.Requeue{}
		err := trials.TryCreate(t.Context(), &again, configMap(map[string]string{"a": content}))
		return again.Delay(), err
	}

	answer = apierrors.NewBadRequest("no")
	left, err := try("1")
	g.Expect(err).To(MatchError(answer))
	g.Expect(left).To(Equal(time.Minute))
	clock.Step(59 * time.Second)
	left, err = try("1")
	g.Expect(err).To(MatchError(answer))
	g.Expect(left).To(Equal(time.Second))
	g.Expect(requests).To(Equal(1))
	clock.Step(time.Second)
	left, err = try("1")
	g.Expect(err).To(MatchError(answer))
	g.Expect(left).To(Equal(2*time.Minute), "the delay grows")
	g.Expect(requests).To(Equal(2))

	_, err = try("2")
	g.Expect(err).To(MatchError(answer))
	g.Expect(requests).To(Equal(3), "other content may be accepted")
	_, err = try("1")
	g.Expect(err).To(MatchError(answer))
	g.Expect(requests).To(Equal(3), "contents that alternate are not sent each time")
	clock.Step(time.Minute)
	answer = errors.New("no answer")
	for range 2 {
		left, err = try("2")
		g.Expect(err).To(MatchError(answer))
		g.Expect(left).To(BeZero())
	}
	g.Expect(requests).To(Equal(5), "an error that is no refusal is not remembered")
	answer = nil
	left, err = try("2")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeZero())
}
