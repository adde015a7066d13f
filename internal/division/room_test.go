package division_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/division"
)

type byRoom = func(int32, []division.Room) (map[string]int32, error)

func TestByRoom(t *testing.T) {
	for name, c := range map[string]struct {
		divide byRoom
		total  int32
		rooms  []division.Room
		want   map[string]int32
	}{
		"new, by capacity":     {division.ByCapacity, 6, []division.Room{{"a", 0, 20}, {"b", 0, 10}, {"c", 0, 0}}, map[string]int32{"a": 4, "b": 2, "c": 0}},
		"more, by capacity":    {division.ByCapacity, 9, []division.Room{{"a", 1, 1}, {"b", 5, 4}, {"c", 0, 4}}, map[string]int32{"a": 1, "b": 7, "c": 1}},
		"fewer, by capacity":   {division.ByCapacity, 3, []division.Room{{"a", 4, 0}, {"b", 2, 90}}, map[string]int32{"a": 2, "b": 1}},
		"new, aggregated":      {division.Aggregate, 6, []division.Room{{"a", 0, 4}, {"b", 0, 10}}, map[string]int32{"a": 0, "b": 6}},
		"new, two are needed":  {division.Aggregate, 12, []division.Room{{"a", 0, 4}, {"b", 0, 10}, {"c", 0, 4}}, map[string]int32{"a": 2, "b": 10, "c": 0}},
		"more, aggregated":     {division.Aggregate, 8, []division.Room{{"a", 2, 4}, {"b", 1, 90}, {"c", 0, 99}}, map[string]int32{"a": 6, "b": 2, "c": 0}},
		"fewer, aggregated":    {division.Aggregate, 4, []division.Room{{"a", 4, 0}, {"b", 2, 90}, {"c", 2, 0}}, map[string]int32{"a": 4, "b": 0, "c": 0}},
		"a cluster has gone":   {division.Aggregate, 6, []division.Room{{"a", 2, 1}, {"b", 1, 90}}, map[string]int32{"a": 3, "b": 3}},
		"zero":                 {division.Aggregate, 0, []division.Room{{"a", 2, 1}}, map[string]int32{"a": 0}},
		"zero, by capacity":    {division.ByCapacity, 0, []division.Room{{"a", 2, 1}}, map[string]int32{"a": 0}},
		"nothing, by capacity": {division.ByCapacity, 0, []division.Room{{"a", 0, 0}}, map[string]int32{"a": 0}},
	} {
		got, err := c.divide(c.total, c.rooms)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestByRoomRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		total int32
		rooms []division.Room
		code  backends.Code
	}{
		"no room":       {4, []division.Room{{"a", 1, 2}}, backends.CodeNoCapacity},
		"nobody":        {4, nil, backends.CodeNoCapacity},
		"negative":      {-1, nil, ""},
		"less than one": {1, []division.Room{{"a", -1, 2}}, ""},
		"no free":       {1, []division.Room{{"a", 1, -2}}, ""},
		"twice":         {1, []division.Room{{"a", 1, 2}, {"a", 1, 2}}, ""},
	} {
		for _, divide := range []byRoom{division.Aggregate, division.ByCapacity} {
			if got, err := divide(c.total, c.rooms); err == nil || backends.CodeOf(err) != c.code {
				t.Errorf("%s: %v %v", name, got, err)
			}
		}
	}
}

// TestByRoomKeeps: what runs stays, nothing exceeds its room, sums are exact, and the order of clusters does not matter.
func TestByRoomKeeps(t *testing.T) {
	random := rand.New(rand.NewSource(7))
	for range 20_000 {
		rooms := make([]division.Room, 1+random.Intn(8))
		var running, free int32
		bound := []int{2, 10, 100_000}[random.Intn(3)]
		for i := range rooms {
			rooms[i] = division.Room{Cluster: fmt.Sprint("c", i), Current: int32(random.Intn(bound)), Free: int64(random.Intn(bound))}
			running += rooms[i].Current
			free += int32(rooms[i].Free)
		}
		total := random.Int31n(running + free + 1)
		if random.Intn(4) == 0 {
			total = running
		}
		for name, divide := range map[string]byRoom{"ByCapacity": division.ByCapacity, "Aggregate": division.Aggregate} {
			got, err := divide(total, rooms)
			if err != nil {
				t.Fatalf("%s of %d over %v: %v", name, total, rooms, err)
			}
			if problem := broken(total, running, rooms, got); problem != "" {
				t.Fatalf("%s of %d over %v gives %v: %s", name, total, rooms, got, problem)
			}
			random.Shuffle(len(rooms), func(i, j int) { rooms[i], rooms[j] = rooms[j], rooms[i] })
			if again, err := divide(total, rooms); err != nil || !cmp.Equal(got, again) {
				t.Fatalf("%s of %d over %v: %v, and %v in another order", name, total, rooms, got, again)
			}
		}
	}
}

func broken(total, running int32, rooms []division.Room, got map[string]int32) string {
	sum := int32(0)
	for _, r := range rooms {
		n := got[r.Cluster]
		sum += n
		switch {
		case n < 0 || int64(n) > int64(r.Current)+r.Free:
			return r.Cluster + " is beyond its room"
		case total >= running && n < r.Current:
			return r.Cluster + " loses replicas although there are more"
		case total <= running && n > r.Current:
			return r.Cluster + " gets replicas although there are fewer"
		}
	}
	if sum != total || len(got) != len(rooms) {
		return fmt.Sprint("the sum is ", sum)
	}
	return ""
}
