package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const auditLines = `{"stage":"ResponseComplete","requestURI":"/api/v1/secrets?resourceVersion=0","verb":"list","user":{"username":"a"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:00.000001Z"}
{"stage":"ResponseComplete","requestURI":"/api/v1/secrets?continue=x&limit=200","verb":"list","user":{"username":"a"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:00.000002Z"}
{"stage":"ResponseComplete","requestURI":"/api/v1/secrets?limit=1","verb":"list","user":{"username":"a"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:00.000003Z"}
{"stage":"ResponseStarted","requestURI":"/api/v1/secrets?watch=true","verb":"watch","user":{"username":"a"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:01Z"}
{"stage":"ResponseComplete","requestURI":"/api/v1/secrets?watch=true","verb":"watch","user":{"username":"a"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:01Z"}
{"stage":"ResponseComplete","requestURI":"/api/v1/secrets","verb":"list","user":{"username":"a"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:02Z"}
{"stage":"ResponseComplete","requestURI":"/apis","verb":"get","user":{"username":"a"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:02Z"}
{"stage":"ResponseComplete","requestURI":"/x","verb":"update","user":{"username":"a"},"objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io","namespace":"n","name":"l"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:02Z"}
{"stage":"ResponseComplete","requestURI":"/x","verb":"patch","user":{"username":"a"},"objectRef":{"resource":"machines","subresource":"status","apiGroup":"cluster.x-k8s.io","namespace":"n","name":"m"},"responseStatus":{"code":409},"requestReceivedTimestamp":"2026-01-01T00:00:03Z"}
{"stage":"ResponseComplete","requestURI":"/x","verb":"pat`

func TestAuditLog(t *testing.T) {
	g := NewWithT(t)
	requests, size, err := read(strings.NewReader(auditLines))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requests.Count()).To(Equal(map[string]int{
		"list secrets": 4, "watch secrets": 1, "get ": 1, "update leases": 1, "patch machines/status": 1,
	}), "a watch counts once, a line that is being written does not")
	g.Expect(requests.Work().Count()).To(Equal(map[string]int{"list secrets": 2, "patch machines/status": 1}))
	last := requests[len(requests)-1]
	g.Expect([]string{last.User, last.Group, last.Namespace, last.Name}).To(Equal([]string{"a", "cluster.x-k8s.io", "n", "m"}))
	g.Expect(last.Code).To(Equal(409))
	g.Expect(last.Time.Second()).To(Equal(3))

	g.Expect(size).To(BeEquivalentTo(strings.LastIndex(auditLines, "\n") + 1))

	_, _, err = read(strings.NewReader("no JSON\n"))
	g.Expect(err).To(HaveOccurred())
}

func TestAFollowerReadsEachRequestOnce(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "audit.json")
	f := Follow(path)
	g.Expect(f.Next()).To(BeEmpty(), "no log yet")
	// The last line is cut off, then completed.
	g.Expect(os.WriteFile(path, []byte(auditLines), 0o600)).To(Succeed())
	g.Expect(f.Next()).To(HaveLen(8))
	g.Expect(f.Next()).To(BeEmpty())
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = file.WriteString(`ch","objectRef":{"resource":"agents"}}` + "\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Close()).To(Succeed())
	completed, err := f.Next()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(completed.Count()).To(Equal(map[string]int{"patch agents": 1}))
}
