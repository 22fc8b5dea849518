"""Where prices come from when nobody sets them."""

from paper_broker.model.prices import Walk


def test_walk_depends_on_seed_symbol_and_step_alone():
    def path(seed, symbol):
        walk = Walk(seed)
        steps = [walk.opening(symbol)]
        for _ in range(200):
            steps.append(walk.after(steps[-1]))
        return [(step.bid, step.ask) for step in steps]

    assert path("1", "AAA") == path("1", "AAA")
    assert path("1", "AAA") != path("2", "AAA")
    assert path("1", "AAA") != path("1", "BBB")
    assert len(set(path("1", "AAA"))) > 50
    assert all(0 < bid < ask for bid, ask in path("1", "AAA"))
    assert len(set(path("1", "SIM.SLOW"))) == 1
