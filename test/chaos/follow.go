package main

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// follower sees all that happens on the hub, past the managers, and holds it against the rules.
type follower struct {
	lab *lab.Lab
	// tell is told of each rule that was broken, as soon as it was.
	tell func(violation)

	mu         sync.Mutex
	stays      map[types.NamespacedName][]stay // by BareMetalHost
	approvals  []approval
	claims     ledger
	servers    map[types.NamespacedName][]string // what claims on its server are about, by BareMetalHost
	judged     map[types.UID]bool
	namespaces map[string]*census
	broken     []violation
	told       map[string]bool
	checked    map[string]int
	// members are those of each cluster's etcd as they were seen last, by namespace, and removals the voters that were
	// removed since and are not judged yet.
	members  map[string][]lab.EtcdMember
	removals map[string][]removal
	// silent are the objects without a summary, and since when they are there.
	silent map[subject]time.Time
	// most is how many objects of a kind there were at most since [follower.alive].
	most map[string]int
}

// subject is an object that conditions are about.
type subject struct {
	kind string
	key  types.NamespacedName
	uid  types.UID
}

// violation is a rule that was broken.
type violation struct {
	Rule string `json:"rule"`
	What string `json:"what"`
	Seed uint64 `json:"seed"`
	// Rounds is how many, from the seed on, show it; zero: that one.
	Rounds int       `json:"rounds,omitempty"`
	At     time.Time `json:"at"`
}

func newFollower(l *lab.Lab) *follower {
	return &follower{
		lab: l, tell: func(violation) {}, stays: map[types.NamespacedName][]stay{}, claims: ledger{},
		servers: map[types.NamespacedName][]string{}, judged: map[types.UID]bool{}, namespaces: map[string]*census{},
		told: map[string]bool{}, checked: map[string]int{}, silent: map[subject]time.Time{}, most: map[string]int{},
		members: map[string][]lab.EtcdMember{}, removals: map[string][]removal{},
	}
}

// start begins to follow, until ctx ends.
func (f *follower) start(ctx context.Context) error {
	seen, err := cache.New(f.lab.Env.Config(), cache.Options{Scheme: f.lab.Env.Scheme()})
	if err != nil {
		return fmt.Errorf("cannot follow the hub: %w", err)
	}
	infraMachine := &unstructured.Unstructured{}
	infraMachine.SetGroupVersionKind(lab.Metal3MachineKind)
	for _, kind := range []client.Object{
		infraMachine,
		&metal3api.BareMetalHost{}, &aiv1beta1.Agent{}, &aiv1beta1.InfraEnv{}, &hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{},
		&clusterv1.Machine{}, &bootstrapv1.OpenshiftAssistedConfig{}, &controlplanev1.OpenshiftAssistedControlPlane{},
	} {
		informer, err := seen.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("cannot follow the hub: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { f.see(object, false) },
			UpdateFunc: func(_, object any) { f.see(object, false) },
			DeleteFunc: func(object any) { f.see(object, true) },
		}); err != nil {
			return fmt.Errorf("cannot follow the hub: %w", err)
		}
	}
	go func() { _ = seen.Start(ctx) }()
	if !seen.WaitForCacheSync(ctx) {
		return fmt.Errorf("cannot follow the hub: %w", ctx.Err())
	}
	return nil
}

// see takes in what became of an object.
func (f *follower) see(seen any, gone bool) {
	if last, ok := seen.(toolscache.DeletedFinalStateUnknown); ok {
		seen = last.Obj
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch object := seen.(type) {
	case *metal3api.BareMetalHost:
		f.seeHost(object, gone)
		f.seeClaims(object, gone)
	case *aiv1beta1.Agent:
		f.seeAgent(object, gone)
	case *clusterv1.Machine:
		f.census(object.Namespace).see(object, gone)
	case *aiv1beta1.InfraEnv:
		f.made("InfraEnv", object, gone)
	case *hivev1.ClusterDeployment:
		f.made("ClusterDeployment", object, gone)
	case *hiveext.AgentClusterInstall:
		f.made("AgentClusterInstall", object, gone)
	case *unstructured.Unstructured:
		f.made(object.GetKind(), object, gone)
	case *bootstrapv1.OpenshiftAssistedConfig:
		f.made("OpenshiftAssistedConfig", object, gone)
		f.seeRecord(object, gone)
		f.seeConditions("OpenshiftAssistedConfig", object, object.Status.Conditions, gone)
	case *controlplanev1.OpenshiftAssistedControlPlane:
		if object.Spec.Replicas != nil {
			f.census(object.Namespace).replicas = max(f.census(object.Namespace).replicas, int(*object.Spec.Replicas))
		}
		f.made("OpenshiftAssistedControlPlane", object, gone)
		f.seeConditions("OpenshiftAssistedControlPlane", object, object.Status.Conditions, gone)
	}
}

func (f *follower) census(namespace string) *census {
	c := f.namespaces[namespace]
	if c == nil {
		c = &census{
			machines: map[types.UID]*life{}, infraEnvs: map[string]string{}, excused: map[string]int{}, forgiven: map[string]bool{},
			made: map[string]map[types.UID]string{}, gone: map[string]int{}, consumers: map[types.NamespacedName][]string{},
		}
		f.namespaces[namespace] = c
	}
	return c
}

func (f *follower) made(kind string, object client.Object, gone bool) {
	c := f.census(object.GetNamespace())
	if c.made[kind] == nil {
		c.made[kind] = map[types.UID]string{}
	}
	c.made[kind][object.GetUID()] = object.GetName()
	if gone {
		c.gone[kind]++
	}
	f.most[kind] = max(f.most[kind], f.count(kind))
}

// seeHost writes down to which infra machine a host is given; it has the name of its Machine.
func (f *follower) seeHost(host *metal3api.BareMetalHost, gone bool) {
	key := client.ObjectKeyFromObject(host)
	var machine types.NamespacedName
	if consumer := host.Spec.ConsumerRef; consumer != nil && !gone {
		machine = types.NamespacedName{Namespace: consumer.Namespace, Name: consumer.Name}
	}
	stays, now := f.stays[key], time.Now()
	if last := len(stays) - 1; last >= 0 && stays[last].to.IsZero() {
		if stays[last].machine == machine {
			return
		}
		stays[last].to = now
		consumers := f.census(host.Namespace).consumers
		consumers[stays[last].machine] = slices.DeleteFunc(consumers[stays[last].machine], func(name string) bool { return name == host.Name })
	}
	if machine.Name != "" {
		stays = append(stays, stay{machine: machine, from: now})
		consumers := f.census(host.Namespace).consumers
		consumers[machine] = append(consumers[machine], host.Name)
	}
	f.stays[key] = stays
}

// seeAgent writes down an approval once; whether it was proven is judged when all else was seen that was written before it.
func (f *follower) seeAgent(agent *aiv1beta1.Agent, gone bool) {
	f.census(agent.Namespace).infraEnvs[agent.Name] = agent.Labels[aiv1beta1.InfraEnvNameLabel]
	if gone || !agent.Spec.Approved {
		delete(f.judged, agent.UID) // it may be approved once more
		return
	}
	if f.judged[agent.UID] {
		return
	}
	f.judged[agent.UID] = true
	f.approvals = append(f.approvals, approval{
		agent: client.ObjectKeyFromObject(agent), at: time.Now(),
		machine: types.NamespacedName{Namespace: agent.Namespace, Name: agent.Labels[aiv1beta1.InfraEnvNameLabel]},
	})
}

func (f *follower) seeConditions(kind string, seen client.Object, conditions []metav1.Condition, gone bool) {
	o := subject{kind, client.ObjectKeyFromObject(seen), seen.GetUID()}
	if gone || isSummed(kind, conditions) {
		delete(f.silent, o)
	} else {
		f.silent[o] = seen.GetCreationTimestamp().Time
	}
	if gone {
		return
	}
	f.checked[conditionRule]++
	for _, told := range mute(kind, o.key, conditions) {
		f.report(conditionRule, told)
	}
}

// ask says that a Machine goes on purpose.
func (f *follower) ask(m *clusterv1.Machine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.census(m.Namespace).see(m, false).asked = true
}

// askFewer says that there are to be so many workers and masters less, whichever.
func (f *follower) askFewer(namespace string, workers, masters int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.census(namespace)
	c.fewer += workers
	c.fewerMasters += masters
}

// askAgain says that a cluster is to be installed again, with other Machines in place of those that it has.
func (f *follower) askAgain(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.census(namespace)
	c.retried = true
	c.replaceAll()
}

// arrive says that a cluster is installed: what was done to install it again was judged, and nothing more is excused by that.
func (f *follower) arrive(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.census(namespace).retried = false
}

// lose judges that a member of etcd was wiped that voted, unless its cluster is given up to be installed again.
func (f *follower) lose(namespace string, w lab.WipedMember) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.census(namespace)
	if c.retried || w.Unknown { // of one that nobody answers for it is not known whether it voted
		c.given = append(c.given, w)
	} else if !slices.Contains(c.given, w) {
		f.report(lossRule, fmt.Sprintf("%s: the disk of Node %s was wiped at %s while its member of etcd voted", namespace,
			w.Node, w.Time.Format(time.TimeOnly)))
	}
}

// seeMembers takes in who is a member of a cluster's etcd now.
func (f *follower) seeMembers(namespace string, members []lab.EtcdMember) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removals[namespace] = append(f.removals[namespace], removedBetween(f.members[namespace], members, time.Now())...)
	f.members[namespace] = members
	f.checked[memberRule]++
}

// judgeRemovals holds the voters that were removed against the Machines of their Nodes, when they are older than the
// slack, or all at the end. The caller holds the lock.
func (f *follower) judgeRemovals(end bool) {
	for namespace, removals := range f.removals {
		f.removals[namespace] = slices.DeleteFunc(removals, func(removed removal) bool {
			if !end && time.Since(removed.at) < slack {
				return false
			}
			if what := f.census(namespace).misplaced(namespace, removed); what != "" {
				f.report(memberRule, what)
			}
			return true
		})
	}
}

// comeBack says that a cluster that was deleted is applied once more, with other Machines in place of those that it had.
func (f *follower) comeBack(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.census(namespace)
	c.replaceAll()
	for _, kind := range named {
		for _, name := range c.made[kind] {
			c.forgiven[name] = c.abandoned && !c.ever(name)
		}
	}
	delete(f.members, namespace) // its etcd is another one
	delete(f.removals, namespace)
	c.leaving, c.retried, c.abandoned, c.fewer, c.fewerMasters = false, false, false, 0, 0
}

// leave says that a cluster is deleted.
func (f *follower) leave(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.census(namespace).leaving = true
}

// excuse follows a deletion, by somebody who may not, of an object that is of some kinds: another one may be seen
// before the answer is here. Only where there was none to delete nothing is excused: the storm may end while the answer
// is under way.
func (f *follower) excuse(namespace string, kinds []string, deletion func() error) error {
	f.excuseBy(namespace, 1, kinds)
	err := deletion()
	if apierrors.IsNotFound(err) {
		f.excuseBy(namespace, -1, kinds)
	}
	return err
}

func (f *follower) excuseBy(namespace string, by int, kinds []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range kinds {
		f.census(namespace).excused[kind] += by
	}
}

// abandon says that a cluster is deleted while it is made.
func (f *follower) abandon(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.census(namespace).abandoned = true
}

// report remembers that a rule was broken, once. The caller holds the lock.
func (f *follower) report(rule, what string) {
	if f.told[rule+what] {
		return
	}
	f.told[rule+what] = true
	v := violation{Rule: rule, What: what, At: time.Now()}
	f.broken = append(f.broken, v)
	f.tell(v)
}

// check counts that a rule was held against so many things.
func (f *follower) check(rule string, things int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checked[rule] += things
}

// alive is the greatest number of objects of a kind that there were at a time since it was asked last.
func (f *follower) alive(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	most := max(f.most[kind], f.count(kind))
	f.most[kind] = f.count(kind)
	return most
}

// count counts the objects of a kind that are there now. The caller holds the lock.
func (f *follower) count(kind string) int {
	n := 0
	for _, c := range f.namespaces {
		n += len(c.made[kind]) - c.gone[kind]
	}
	return n
}

// fail is report for everybody else.
func (f *follower) fail(rule, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report(rule, what)
}

// judge holds what was seen against the rules. Approvals are judged when they are older than the slack, or all at the end.
func (f *follower) judge(end bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var hosts map[types.NamespacedName]types.NamespacedName
	if len(f.approvals) > 0 {
		hosts = f.hostsByAgent()
	}
	f.approvals = slices.DeleteFunc(f.approvals, func(a approval) bool {
		if !end && time.Since(a.at) < slack {
			return false
		}
		f.checked[provenRule]++
		host, known := hosts[a.agent]
		if told := unproven(a, known, f.stays[host]); told != "" {
			f.report(provenRule, told)
		}
		f.judgeClaims(a, host)
		return true
	})
	f.checked[twiceRule]++
	for _, namespace := range slices.Sorted(maps.Keys(f.namespaces)) {
		told := f.namespaces[namespace].doubles(namespace)
		if end {
			told = append(told, f.namespaces[namespace].strays(namespace)...)
		}
		for _, what := range told {
			f.report(twiceRule, what)
		}
	}
	f.judgeSilent()
	f.judgeRemovals(end)
	f.checked[lossRule]++
	for _, loss := range f.lab.Unasked() {
		f.report(lossRule, loss.String())
	}
	for _, escaped := range f.lab.Rack.Escaped() {
		f.report(lossRule, escaped)
	}
}

// judgeSilent tells of objects that have no summary though there was time enough. The caller holds the lock.
func (f *follower) judgeSilent() {
	for o, since := range f.silent {
		if time.Since(since) > grace {
			f.report(conditionRule, fmt.Sprintf("%s %s has no condition %s", o.kind, o.key, summaries[o.kind]))
		}
	}
}

// hostsByAgent are the BareMetalHosts of servers, by what their Agents are called: the servers themselves say so, and no object.
func (f *follower) hostsByAgent() map[types.NamespacedName]types.NamespacedName {
	found := map[types.NamespacedName]types.NamespacedName{}
	for key := range f.stays {
		if host := f.lab.Rack.Host(path.Join(key.Namespace, key.Name)); host != nil {
			found[types.NamespacedName{Namespace: key.Namespace, Name: host.Hardware().UUID}] = key
		}
	}
	return found
}

// searchSecrets looks through all objects that are no Secrets.
func (f *follower) searchSecrets(ctx context.Context) error {
	for _, kind := range lab.Kinds {
		if kind.Kind == "Secret" {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := f.lab.Client().List(ctx, list); err != nil {
			return fmt.Errorf("cannot look for secrets: %w", err)
		}
		for i := range list.Items {
			if where := toldBy(&list.Items[i]); where != "" {
				f.fail(secretRule, where)
			}
		}
		f.check(secretRule, len(list.Items))
	}
	return nil
}

// toldBy tells where an object has a secret that it may not have; empty: nowhere.
func toldBy(object *unstructured.Unstructured) string {
	switch told, err := lab.SecretIn(object); {
	case err != nil:
		return err.Error()
	case told != "":
		return fmt.Sprintf("%s %s/%s has a password, key or token", object.GetKind(), object.GetNamespace(), object.GetName())
	}
	return ""
}
