package faultproxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	. "github.com/onsi/gomega"
)

func TestTimesAreShifted(t *testing.T) {
	for text, shifted := range map[string]string{
		`{"creationTimestamp":"2026-11-24T18:00:00Z"}`:                      `{"creationTimestamp":"2026-11-25T18:00:00Z"}`,
		`{"renewTime":"2026-11-24T18:00:00.123456Z","n":1}`:                 `{"renewTime":"2026-11-25T18:00:00.123456Z","n":1}`,
		`{"annotations":{"x":"{\"timestamp\":\"2026-12-31T23:59:59Z\"}"}}`:  `{"annotations":{"x":"{\"timestamp\":\"2027-01-01T23:59:59Z\"}"}}`,
		`"a":"2026-02-28T00:00:00Z","b":"2024-02-28T00:00:00+01:00"`:        `"a":"2026-03-01T00:00:00Z","b":"2024-02-29T00:00:00+01:00"`,
		`{"creationTimestamp":null,"x":"2026-99-99T18:00:00Z","y":"20261"}`: `{"creationTimestamp":null,"x":"2026-99-99T18:00:00Z","y":"20261"}`,
		`{"data":{"a":"MjAyNi0xMS0yNFQxODowMDowMFo="}}`:                     `{"data":{"a":"MjAyNi0xMS0yNFQxODowMDowMFo="}}`,
	} {
		got, n := later([]byte(text), 24*time.Hour)
		NewWithT(t).Expect(string(got)).To(Equal(shifted))
		back, again := later(got, -24*time.Hour)
		NewWithT(t).Expect(string(back)).To(Equal(text))
		NewWithT(t).Expect(again).To(Equal(n))
	}
}

func TestBodyWithShiftedTimesIsReadInAnyPieces(t *testing.T) {
	const text = "{\"at\":\"2026-11-24T18:00:00Z\"}\n{\"at\":\"2026-11-24T19:00:00Z\"}"
	s := &shifting{conn: NewConnection()}
	body := s.shift(io.NopCloser(iotest.OneByteReader(strings.NewReader(text))), time.Hour)
	got, err := io.ReadAll(iotest.OneByteReader(body))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(string(got)).To(Equal(strings.NewReplacer("T19", "T20", "T18", "T19").Replace(text)))
	NewWithT(t).Expect(s.conn.ShiftedTimes()).To(Equal(2))
	failed := s.shift(io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), time.Hour)
	_, err = io.ReadAll(failed)
	NewWithT(t).Expect(err).To(MatchError(io.ErrUnexpectedEOF))
}

// timely returns a connection to an API server with one object, which records the last body and Accept header.
func timely(t *testing.T) (c *Connection, target string, wrote, accepted *string) {
	t.Helper()
	wrote, accepted = new(string), new(string)
	c, front := connect(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*wrote, *accepted = string(body), r.Header.Get("Accept")
		_, _ = io.WriteString(rw, `{"at":"2026-11-24T18:00:00Z"}`)
		if r.URL.Query().Has("watch") {
			_, _ = io.WriteString(rw, "\n")
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	return c, front + "/apis/x/v1/things", wrote, accepted
}

func TestClientReadsAndWritesTimesOfItsClock(t *testing.T) {
	g := NewWithT(t)
	c, target, wrote, _ := timely(t)
	for ahead, times := range map[time.Duration][2]string{
		0:          {"2026-11-24T18:00:00Z", "2026-11-24T17:00:00Z"},
		time.Hour:  {"2026-11-24T17:00:00Z", "2026-11-24T18:00:00Z"},
		-time.Hour: {"2026-11-24T19:00:00Z", "2026-11-24T16:00:00Z"},
	} {
		c.StepClock(ahead)
		_, seen, _, err := send(t.Context(), http.MethodPut, target+"/a", `{"at":"2026-11-24T17:00:00Z"}`)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen).To(Equal(fmt.Sprintf(`{"at":%q}`, times[0])), "the client reads, with offset %s", ahead)
		g.Expect(*wrote).To(Equal(fmt.Sprintf(`{"at":%q}`, times[1])), "the client writes, with offset %s", ahead)
	}
	g.Expect(c.ShiftedTimes()).To(Equal(4))
}

func TestClockRequestsJSON(t *testing.T) {
	g := NewWithT(t)
	c, target, _, accepted := timely(t)
	c.StepClock(time.Hour)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf;as=Table,application/json")
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(*accepted).To(Equal("application/json;as=Table,application/json"))
}

// The cache of a client contains times, so the client has to read all objects again after a step.
func TestClockStepEndsWatchesUntilNextList(t *testing.T) {
	g := NewWithT(t)
	c, target, _, _ := timely(t)
	watch := func() (*http.Response, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target+"?watch=true&resourceVersion=7", nil)
		g.Expect(err).NotTo(HaveOccurred())
		return http.DefaultClient.Do(request)
	}
	before, err := watch()
	g.Expect(err).NotTo(HaveOccurred())
	defer before.Body.Close()
	g.Expect(before.StatusCode).To(Equal(http.StatusOK))
	c.StepClock(time.Hour)
	_, err = io.ReadAll(before.Body)
	g.Expect(err).To(HaveOccurred(), "the step ends the watch")
	refused, err := watch()
	g.Expect(err).NotTo(HaveOccurred())
	defer refused.Body.Close()
	g.Expect(refused.StatusCode).To(Equal(http.StatusGone))
	code, _, _, err := send(t.Context(), http.MethodGet, target, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(code).To(Equal(http.StatusOK))
	again, err := watch()
	g.Expect(err).NotTo(HaveOccurred())
	defer again.Body.Close()
	g.Expect(again.StatusCode).To(Equal(http.StatusOK))
	line := make([]byte, len(`{"at":"2026-11-24T17:00:00Z"}`))
	_, err = io.ReadFull(again.Body, line)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(line)).To(ContainSubstring("T17:00:00Z"), "events have times of the new clock")
	g.Expect(c.Counts()).To(BeEmpty(), "a step is no fault")
}

func TestConnectionCountsRequestsAndWrites(t *testing.T) {
	g := NewWithT(t)
	c, _, target := stormy(t, Rates{ServerError: 1})
	for range 3 {
		code, _, _, err := send(t.Context(), http.MethodPatch, target+"/a?fieldManager=x", "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(code).To(Equal(http.StatusInternalServerError))
	}
	g.Expect(c.Writes()).To(BeZero(), "no write was forwarded")
	c.Calm()
	code, _, _, err := send(t.Context(), http.MethodPatch, target+"/a", "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(code).To(Equal(http.StatusOK))
	_, err = watched(t, target, func(int, time.Duration) bool { return true })
	g.Expect(err).NotTo(HaveOccurred())
	const path = "/apis/x/v1/namespaces/lab/things"
	g.Expect(c.TakeRequests()).To(Equal(map[Request]int{{"PATCH", path + "/a"}: 4, {"WATCH", path}: 1}))
	g.Expect(c.TakeRequests()).To(BeEmpty(), "each request is returned once")
	g.Expect(c.Writes()).To(Equal(1))
}
