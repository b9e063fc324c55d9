package metal3

import (
	"encoding/json"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
)

// full returns a BareMetalHost in the API's own type, with all fields that are read.
func full() *metal3api.BareMetalHost {
	return &metal3api.BareMetalHost{
		TypeMeta:   metav1.TypeMeta{APIVersion: "metal3.io/v1alpha1", Kind: "BareMetalHost"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "rack1-u7", UID: "uid", Labels: map[string]string{"rack": "1"}},
		Spec: metal3api.BareMetalHostSpec{
			BMC:             metal3api.BMCDetails{Address: "redfish://bmc"},
			BootMACAddress:  "02:00:00:00:00:01",
			RootDeviceHints: &metal3api.RootDeviceHints{DeviceName: "/dev/sda", Rotational: ptr.To(true)},
			ConsumerRef: &corev1.ObjectReference{
				APIVersion: "v1",
				Kind:       MachineKind,
				Namespace:  "lab",
				Name:       "m",
			},
			Image: &metal3api.Image{URL: "http://iso"},
		},
		Status: metal3api.BareMetalHostStatus{HardwareDetails: &metal3api.HardwareDetails{
			SystemVendor: metal3api.HardwareSystemVendor{
				SerialNumber: "S1",
			},
			NIC: []metal3api.NIC{{Name: "eth0", MAC: "02:00:00:00:00:01"}, {MAC: "02:00:00:00:00:02"}},
		}},
	}
}

// decoded returns a BareMetalHost as clients with the type Host decode it.
func decoded(t *testing.T, object any) runtime.Object {
	t.Helper()
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(AddToScheme(scheme)).To(Succeed())
	raw, err := json.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	host, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode(raw, nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	return host
}

// Each field of Host has the JSON path of the API's own type.
func TestHostIsABareMetalHost(t *testing.T) {
	g, whole := NewWithT(t), full()
	hints := whole.Spec.RootDeviceHints
	wanted := &Host{
		TypeMeta:   whole.TypeMeta,
		ObjectMeta: whole.ObjectMeta,
		Spec: HostSpec{
			BMC: BMC{Address: "redfish://bmc"}, BootMACAddress: "02:00:00:00:00:01", RootDeviceHints: hints,
			ConsumerRef: &Consumer{Kind: MachineKind, Namespace: "lab", Name: "m"}, Image: &Image{URL: "http://iso"},
		},
		Status: HostStatus{
			HardwareDetails: &Hardware{SystemVendor: Vendor{SerialNumber: "S1"}, NIC: []NIC{{"02:00:00:00:00:01"}, {"02:00:00:00:00:02"}}},
		},
	}
	g.Expect(decoded(t, whole)).To(Equal(wanted))

	list := &metal3api.BareMetalHostList{
		TypeMeta: metav1.TypeMeta{APIVersion: "metal3.io/v1alpha1", Kind: "BareMetalHostList"},
		Items:    []metal3api.BareMetalHost{*whole},
	}
	list.ResourceVersion = "7"
	hosts, _ := decoded(t, list).(*HostList)
	g.Expect(hosts.Items).To(Equal([]Host{*wanted}))
	g.Expect(hosts.DeepCopyObject()).To(Equal(hosts))
	g.Expect(hosts.ResourceVersion).To(Equal("7"))
}

// Objects in the cache are shared, so a copy must not share memory with its original.
func TestCopyOfHostSharesNoMemory(t *testing.T) {
	g := NewWithT(t)
	original, _ := decoded(t, full()).(*Host)
	untouched, _ := decoded(t, full()).(*Host)
	for _, copied := range []*Host{
		original.DeepCopy(), &(&HostList{Items: []Host{*original}}).DeepCopyObject().(*HostList).Items[0],
	} { //nolint:forcetypeassert // a copy of the same type
		g.Expect(copied).To(Equal(original))
		copied.Labels["rack"], copied.Spec.RootDeviceHints.DeviceName, *copied.Spec.RootDeviceHints.Rotational = "2", "x", false
		copied.Spec.ConsumerRef.Name, copied.Spec.Image.URL = "x", "x"
		copied.Status.HardwareDetails.SystemVendor.SerialNumber, copied.Status.HardwareDetails.NIC[0].MAC = "x", "x"
		g.Expect(original).To(Equal(untouched))
	}
	g.Expect((&Host{}).DeepCopy()).To(Equal(&Host{}))
}
