package journeys

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// record is every version of the Agents and AgentClusterInstalls that an observer saw, by their names.
type record struct {
	t     *testing.T
	start time.Time

	mu   sync.Mutex
	seen map[string][]sight
}

// sight is the content of the status of an object.
type sight struct {
	State, Info string
	Percentage  int64
	Conditions  map[string]string // status/reason by type
}

func newRecord(t *testing.T) *record {
	return &record{t: t, start: time.Now(), seen: map[string][]sight{}}
}

// watch records the objects of a kind until the test ends.
func (w *world) watch(list client.ObjectList) {
	w.Helper()
	c, err := client.NewWithWatch(w.Env.Config(), client.Options{Scheme: w.Env.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())
	events, err := c.Watch(w.ctx, list, client.InNamespace(namespace))
	w.Expect(err).NotTo(HaveOccurred())
	var running sync.WaitGroup
	running.Go(func() {
		for event := range events.ResultChan() {
			switch object := event.Object.(type) {
			case *aiv1beta1.Agent:
				w.seen.note(object.Name, object.Status.Inventory.Hostname, sightOfAgent(object))
			case *hiveext.AgentClusterInstall:
				w.seen.note(object.Name, object.Name, sightOfInstall(object))
			}
		}
	})
	w.Cleanup(func() {
		events.Stop()
		running.Wait()
	})
}

func sightOfAgent(agent *aiv1beta1.Agent) sight {
	s := sight{State: agent.Status.DebugInfo.State, Info: agent.Status.DebugInfo.StateInfo, Conditions: map[string]string{}}
	for _, c := range agent.Status.Conditions {
		s.Conditions[string(c.Type)] = string(c.Status) + "/" + c.Reason
	}
	return s
}

func sightOfInstall(install *hiveext.AgentClusterInstall) sight {
	s := sight{
		State: install.Status.DebugInfo.State, Info: install.Status.DebugInfo.StateInfo,
		Percentage: install.Status.Progress.TotalPercentage, Conditions: map[string]string{},
	}
	for _, c := range install.Status.Conditions {
		s.Conditions[string(c.Type)] = string(c.Status) + "/" + c.Reason
	}
	return s
}

// note adds what is new of an object, and logs it under a name for people.
func (r *record) note(name, title string, s sight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen[name]
	if s.State == "" || len(seen) > 0 && reflect.DeepEqual(seen[len(seen)-1], s) {
		return
	}
	r.seen[name] = append(seen, s)
	r.t.Logf("%7.2f %s %+v", time.Since(r.start).Seconds(), title, s)
}

// rows are what was seen of an object in the columns of a table, without repetitions.
func (r *record) rows(name string, columns []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rows []string
	for _, s := range r.seen[name] {
		if s.State == models.ClusterStatusPendingForInput {
			continue // a cluster without hosts alternates between this state and insufficient
		}
		cells := []string{s.State}
		for _, column := range columns {
			cells = append(cells, s.Conditions[column])
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	return slices.Compact(rows)
}

// percentages are those that a cluster went through.
func (r *record) percentages(name string) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []int64
	for _, s := range r.seen[name] {
		all = append(all, s.Percentage)
	}
	return slices.Compact(all)
}

// expectPercentages checks that a cluster went through some percentages, and never back.
func (w *world) expectPercentages(cluster *lab.Cluster, wanted ...int64) {
	w.Helper()
	seen := w.seen.percentages(cluster.Name)
	w.Expect(seen).To(ContainElements(wanted))
	w.Expect(slices.IsSorted(seen)).To(BeTrue(), "%v", seen)
}

var gap = regexp.MustCompile(`\s{2,}`)

// expectSeen compares the observed states of an object with a table in testdata. The titles of the table name
// conditions. Each line has a state with these conditions. The state of a line that starts with ? ends automatically,
// and the real service may miss it. A line that starts with ~ may be observed with the real service only.
func (w *world) expectSeen(name, table string) {
	w.Helper()
	content, err := os.ReadFile("testdata/" + table)
	w.Expect(err).NotTo(HaveOccurred())
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")[1:] // without the comment
	columns := gap.Split(strings.TrimSpace(lines[0]), -1)
	w.Eventually(func(g Gomega) {
		seen := w.seen.rows(name, columns)
		var wanted []string
		for _, line := range lines[1:] {
			short, rare, row := strings.HasPrefix(line, "?"), strings.HasPrefix(line, "~"), strings.Join(gap.Split(line[2:], -1), " ")
			next := len(wanted)
			missed := next >= len(seen) || seen[next] != row
			if rare && w.Assisted == nil || missed && (short || rare) && w.Assisted != nil {
				continue
			}
			wanted = append(wanted, row)
		}
		g.Expect(seen).To(Equal(wanted), "what was seen of "+name)
	}).WithTimeout(time.Minute).Should(Succeed())
}
