package e2e

import (
	"context"
	"maps"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// Each mistake has its own cluster; all are created and fixed at the same time.
var _ = Describe("Bad input", Ordered, Label("bad-input"), func() {
	all := mistakes()
	clusters := map[string]*lab.Cluster{}
	var failed int
	var user *terminal

	BeforeAll(func(ctx SpecContext) {
		failed = failedReconciles(ctx)
		user = openTerminal(ctx)
		for _, m := range all {
			m.mutations.Namespace, m.mutations.ClusterName, m.mutations.LightAPI = "bad-"+m.name, "bad", lightly()
			if m.simulated && laboratory.Service == nil {
				continue
			}
			if m.before != nil {
				m.before(ctx, m.mutations.Namespace)
			}
			clusters[m.name] = apply(ctx, "sno", m.mutations)
		}
	}, NodeTimeout(installTimeout))

	for _, m := range all {
		It("is explained to its user: "+m.name, func(ctx SpecContext) {
			if m.simulated {
				onlySimulated()
			}
			cluster := clusters[m.name]
			if m.condition != "" {
				Expect(waitReason(ctx, cluster, m.condition, m.reason)).To(ContainSubstring(m.message(cluster)))
			} else {
				wait(ctx, cluster, "complaining", func(s *lab.State) bool {
					return configHas(s, m.reason) && strings.Contains(
						lab.Condition(s.Machines[0].Config.Status.Conditions, bootstrapv1.ReadyCondition).Message, m.message(cluster))
				})
			}
			expectShown(ctx, user, cluster, m)
		}, NodeTimeout(installTimeout))
	}

	It("is not handled in a loop", func(ctx SpecContext) {
		retried := map[*lab.Cluster]int{}
		for _, m := range all {
			if cluster := clusters[m.name]; cluster != nil {
				retried[cluster] = m.retried
			}
		}
		expectNoHotLoop(ctx, retried)
	}, NodeTimeout(2*soon))

	It("is reported by a condition, and not by failing reconciles", func(ctx SpecContext) {
		// A reconcile that always fails does so a dozen times in the first minute. A slow API server makes some
		// reconciles of any client fail.
		Expect(failedReconciles(ctx) - failed).To(BeNumerically("<", 10*len(clusters)))
	}, NodeTimeout(soon))

	It("fails no reconcile, at any later time", func(ctx SpecContext) {
		failing := slices.Collect(maps.Keys(clusters))
		for range 3 { // a slow API server makes some reconciles fail, but not each time
			before := logged()
			reconcileAgain(ctx, failing, clusters)
			errs := reconcilerErrors(before)
			failing = slices.DeleteFunc(failing, func(name string) bool { return errs[clusters[name].Namespace] == "" })
			if len(failing) == 0 {
				return
			}
			GinkgoWriter.Println(errs)
		}
		Expect(failing).To(BeEmpty(), "their reconciles fail each time")
	}, NodeTimeout(installTimeout))

	It("does no harm once it is fixed", func(ctx SpecContext) {
		var fixes sync.WaitGroup
		for _, m := range all {
			if cluster := clusters[m.name]; cluster != nil {
				fixes.Go(func() {
					defer GinkgoRecover()
					m.fix(ctx, cluster)
				})
			}
		}
		fixes.Wait()
		for _, m := range all {
			cluster := clusters[m.name]
			if cluster == nil {
				continue
			}
			waitAvailable(ctx, cluster)
			var again []*hosts.Host
			if m.rebooted {
				again = append(again, rackHostOf(cluster.Hosts[0]))
			}
			expectInstalled(ctx, cluster, 0, again...)
			expectEnded(ctx, user, cluster, m)
		}
	}, NodeTimeout(2*installTimeout))
})

// reconcileAgain makes the managers reconcile all objects of clusters: it pauses and resumes them.
func reconcileAgain(ctx context.Context, names []string, clusters map[string]*lab.Cluster) {
	GinkgoHelper()
	for _, paused := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
		reported := func(conditions []metav1.Condition) bool {
			return lab.Condition(conditions, clusterv1.PausedCondition).Status == paused
		}
		for _, name := range names {
			Expect(clusters[name].Pause(ctx, paused == metav1.ConditionTrue)).To(Succeed())
		}
		for _, name := range names {
			wait(ctx, clusters[name], "paused: "+string(paused), func(s *lab.State) bool {
				return reported(s.ControlPlane.Status.Conditions) && !slices.ContainsFunc(s.Machines,
					func(m lab.Machine) bool { return m.Config != nil && !reported(m.Config.Status.Conditions) })
			})
		}
	}
	<-time.After(time.Second) // an error is logged after it was reported
}

// logged returns the sizes of the logs of our managers.
func logged() map[string]int64 {
	GinkgoHelper()
	sizes := map[string]int64{}
	for _, manager := range ourManagers() {
		log, err := os.Stat(manager.LogPath)
		Expect(err).NotTo(HaveOccurred())
		sizes[manager.LogPath] = log.Size()
	}
	return sizes
}

// reconcilerError matches the log of a failed reconcile by controller-runtime and klog: with one error or, in
// several lines, with more.
var reconcilerError = regexp.MustCompile(`"Reconciler error" err=("(?:[^"\\]|\\.)*"|<\n(?:\t.*\n)* >).* namespace="([^"]*)"`)

// reconcilerErrors returns the logged errors of reconciles since a position, one for each namespace.
func reconcilerErrors(since map[string]int64) map[string]string {
	GinkgoHelper()
	errs := map[string]string{}
	for log, from := range since {
		content, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())
		for _, line := range reconcilerError.FindAllStringSubmatch(string(content[from:]), -1) {
			errs[line[2]] = line[1]
		}
	}
	return errs
}

const (
	// window is the duration of one check for loops; two windows in a row have to be calm.
	window = 3 * time.Second
	// manyReconciles is a limit per window for both managers that they do not reach while the other specs are
	// not at their busiest. Anything that makes a controller loop exceeds it, even a loop of 20 ms that sends no
	// request.
	manyReconciles = 150
)

// expectNoHotLoop checks that our managers do not handle mistakes of clusters in a loop. It counts their
// requests to the API server and assisted-service, rejected requests, failed reconciles, and all reconciles.
// Each retry of the service, given by cluster, allows a few more requests.
func expectNoHotLoop(ctx context.Context, retried map[*lab.Cluster]int) {
	GinkgoHelper()
	// The objects of the mistakes were just written, and other objects of the clusters may follow; a few more
	// requests are fine. A loop sends dozens in a few seconds.
	Eventually(ctx, func(g Gomega) {
		for range 2 {
			expectCalmWindow(ctx, g, retried)
		}
	}).WithTimeout(soon).Should(Succeed())
}

func expectCalmWindow(ctx context.Context, g Gomega, retried map[*lab.Cluster]int) {
	GinkgoHelper()
	since, failed, reconciled, downloaded := time.Now(), failedReconciles(ctx), reconciles(ctx), map[*lab.Cluster]int{}
	for cluster := range retried {
		downloaded[cluster] = downloads(cluster)
	}
	<-time.After(window)
	failed, reconciled = failedReconciles(ctx)-failed, reconciles(ctx)-reconciled
	windows := time.Since(since).Seconds() / window.Seconds() // more than one on a busy machine
	all := ourRequests(since)
	for cluster, often := range retried {
		requests := all.Where(about(cluster.Namespace)).Work()
		retries := often * int(math.Ceil(time.Since(since).Seconds()))
		g.Expect(len(requests.Writes())).To(BeNumerically("<", 8+2*retries), "%v", requests)
		g.Expect(len(requests)).To(BeNumerically("<", 12+3*retries), "%v", requests)
		g.Expect(requests.Where(isRefused)).To(BeEmpty())
		g.Expect(downloads(cluster)-downloaded[cluster]).To(BeNumerically("<", 4), "downloads from assisted-service")
	}
	g.Expect(float64(failed)).To(BeNumerically("<", 8*windows), "reconciles that failed")
	g.Expect(float64(reconciled)).To(BeNumerically("<", manyReconciles*windows), "reconciles")
}

// isRefused reports whether a request will always be rejected, unlike those for objects that were deleted or
// changed meanwhile.
func isRefused(r audit.Request) bool {
	return r.Code >= http.StatusBadRequest && r.Code != http.StatusNotFound && r.Code != http.StatusConflict
}

// failedReconciles counts the failed reconciles of our managers so far.
func failedReconciles(ctx context.Context) int {
	GinkgoHelper()
	return sumOfManagers(ctx, (*process.Process).FailedReconciles)
}

// reconciles counts all reconciles of our managers so far.
func reconciles(ctx context.Context) int {
	GinkgoHelper()
	return sumOfManagers(ctx, (*process.Process).Reconciles)
}

func sumOfManagers(ctx context.Context, of func(*process.Process, context.Context) (int, error)) int {
	GinkgoHelper()
	sum := 0
	for _, manager := range ourManagers() {
		Eventually(ctx, func() (err error) { // a manager that was just started has no controllers yet
			n, err := of(manager, ctx)
			sum += n
			return err
		}).Should(Succeed())
	}
	return sum
}
