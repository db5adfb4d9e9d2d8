//! Answers of DNS that are kept, each asked for once at a time on an I/O thread.

use crate::lookup::Unanswered;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, Shared};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::Instant;

/// Questions whose answers are kept. Requests may have a say in them.
const MOST_KEPT: usize = 1024;
/// Between two tries to get an answer that has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// How long answers are good for. DNS says so, too, but not to everybody who asks the system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// An answer is used for so long.
    pub fresh: Duration,
    /// And for so much longer while the question is put again, so that nobody waits for that.
    pub overlap: Duration,
    /// As long as the question has no other answer.
    pub usable: Duration,
    pub when_gone: WhenGone,
}

/// What becomes of an answer when DNS says that there is nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenGone {
    Forget,
    /// As if DNS were down.
    Keep,
}

pub(crate) type Answer<T> = Result<Rc<[T]>, Unanswered>;
type Asked<T> = Shared<LocalBoxFuture<'static, Answer<T>>>;

pub(crate) struct Answers<T> {
    terms: Terms,
    kept: RefCell<HashMap<String, Kept<T>>>,
}

struct Kept<T> {
    known: Option<(Instant, Rc<[T]>)>,
    asked: Option<Asked<T>>,
    /// The last try, if it has failed.
    failed: Option<(Instant, Unanswered)>,
}

/// What can be said at once.
enum Begun<T> {
    Known(Answer<T>),
    Asked(Asked<T>),
}

impl<T: 'static> Answers<T> {
    pub fn new(terms: Terms) -> Rc<Self> {
        Rc::new(Self { terms, kept: RefCell::default() })
    }

    /// The answer to a question that `ask` puts.
    pub async fn get(
        self: &Rc<Self>,
        question: &str,
        ask: impl FnOnce() -> LocalBoxFuture<'static, Answer<T>>,
    ) -> Answer<T> {
        match self.begin(question, ask) {
            Begun::Known(answer) => answer,
            Begun::Asked(asked) => {
                let answer = asked.await;
                self.end(question, answer)
            }
        }
    }

    fn begin(
        self: &Rc<Self>,
        question: &str,
        ask: impl FnOnce() -> LocalBoxFuture<'static, Answer<T>>,
    ) -> Begun<T> {
        let mut all = self.kept.borrow_mut();
        if !all.contains_key(question) {
            make_room(&mut all, &self.terms);
            all.insert(question.to_owned(), Kept::default());
        }
        let kept = all.get_mut(question).expect("invariant: it is there now");
        let age = kept.known.as_ref().map(|(since, _)| since.elapsed());
        if let Some((_, answer)) = kept.known.as_ref().filter(|_| age < Some(self.terms.fresh)) {
            return Begun::Known(Ok(Rc::clone(answer)));
        }
        if let Some((_, why)) = kept.failed.as_ref().filter(|(since, _)| since.elapsed() < PAUSE) {
            let why = why.clone();
            return Begun::Known(kept.usable(&self.terms).ok_or(why));
        }
        let is_new = kept.asked.is_none();
        let asked = kept.asked.get_or_insert_with(|| ask().shared()).clone();
        match kept.known.as_ref().filter(|_| age < Some(self.terms.fresh + self.terms.overlap)) {
            None => Begun::Asked(asked),
            Some((_, answer)) => {
                if is_new {
                    let (own, question) = (Rc::clone(self), question.to_owned());
                    spawn_local(async move { own.end(&question, asked.await) });
                }
                Begun::Known(Ok(Rc::clone(answer)))
            }
        }
    }

    /// Whoever has waited gets the answer to go by: the new one, or the last one while there is none.
    fn end(&self, question: &str, answer: Answer<T>) -> Answer<T> {
        let mut all = self.kept.borrow_mut();
        let Some(kept) = all.get_mut(question) else { return answer };
        // Of several that waited for it, the first is here before anybody begins anew.
        let is_first = kept.asked.take_if(|asked| asked.peek().is_some()).is_some();
        let why = match answer {
            Ok(answer) => {
                kept.known = Some((Instant::now(), Rc::clone(&answer)));
                kept.failed = None;
                return Ok(answer);
            }
            Err(why) => why,
        };
        kept.failed = Some((Instant::now(), why.clone()));
        if matches!(why, Unanswered::Gone) && self.terms.when_gone == WhenGone::Forget {
            kept.known = None;
        }
        let usable = kept.usable(&self.terms);
        if is_first && usable.is_some() {
            tracing::warn!(question, reason = %why, "DNS gives no answer: the last one is used on");
        }
        usable.ok_or(why)
    }
}

impl<T> Kept<T> {
    fn usable(&self, terms: &Terms) -> Option<Rc<[T]>> {
        let (since, answer) = self.known.as_ref()?;
        (since.elapsed() < terms.usable).then(|| Rc::clone(answer))
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { known: None, asked: None, failed: None }
    }
}

/// Forgets what is least likely to be needed, if there is too much.
fn make_room<T>(all: &mut HashMap<String, Kept<T>>, terms: &Terms) {
    if all.len() < MOST_KEPT {
        return;
    }
    let is_fresh =
        |kept: &Kept<T>| kept.known.as_ref().is_some_and(|(since, _)| since.elapsed() < terms.fresh);
    all.retain(|_, kept| kept.asked.is_some() || is_fresh(kept));
    if all.len() >= MOST_KEPT {
        all.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tokio::task::LocalSet;
    use tokio::time::sleep;

    const TERMS: Terms = Terms {
        fresh: Duration::from_secs(60),
        overlap: Duration::from_secs(60),
        usable: Duration::from_secs(3600),
        when_gone: WhenGone::Forget,
    };

    /// DNS as a test has it.
    #[derive(Default)]
    struct World {
        answer: Rc<RefCell<Option<Answer<u8>>>>,
        questions: Rc<Cell<u32>>,
    }

    impl World {
        fn says(&self, answer: Answer<u8>) {
            self.answer.replace(Some(answer));
        }

        async fn ask(&self, answers: &Rc<Answers<u8>>, question: &str) -> Result<Vec<u8>, String> {
            let (answer, questions) = (Rc::clone(&self.answer), Rc::clone(&self.questions));
            let ask = || {
                async move {
                    questions.set(questions.get() + 1);
                    // clock: virtual in all tests.
                    sleep(Duration::from_millis(100)).await;
                    answer.borrow().clone().expect("something is said")
                }
                .boxed_local()
            };
            let found = answers.get(question, ask).await;
            found.map(|found| found.to_vec()).map_err(|why| why.to_string())
        }
    }

    fn down() -> Answer<u8> {
        Err(Unanswered::failed("down"))
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_wait_for_one_answer() {
        let (world, answers) = (World::default(), Answers::new(TERMS));
        world.says(Ok([1].into()));
        let (first, second) = tokio::join!(world.ask(&answers, "a"), world.ask(&answers, "a"));
        assert_eq!((first, second), (Ok(vec![1]), Ok(vec![1])));
        assert_eq!(world.questions.get(), 1);
        assert_eq!(world.ask(&answers, "a").await, Ok(vec![1]));
        assert_eq!(world.questions.get(), 1, "it is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_question_that_is_put_again() {
        let (world, answers) = (World::default(), Answers::new(TERMS));
        let everything = async {
            world.says(Ok([1].into()));
            world.ask(&answers, "a").await.unwrap();
            sleep(TERMS.fresh).await;
            world.says(Ok([2].into()));
            let before = Instant::now();
            assert_eq!(world.ask(&answers, "a").await, Ok(vec![1]));
            assert_eq!(before.elapsed(), Duration::ZERO);
            sleep(Duration::from_secs(1)).await;
            assert_eq!((world.ask(&answers, "a").await, world.questions.get()), (Ok(vec![2]), 2));
            sleep(TERMS.fresh + TERMS.overlap).await;
            world.says(Ok([3].into()));
            assert_eq!(world.ask(&answers, "a").await, Ok(vec![3]), "what is too old is not used");
        };
        LocalSet::new().run_until(everything).await;
    }

    #[tokio::test(start_paused = true)]
    async fn while_dns_is_down_the_last_answer_is_used_but_not_for_ever() {
        let (world, answers) = (World::default(), Answers::new(TERMS));
        world.says(down());
        assert_eq!(world.ask(&answers, "a").await, Err("down".into()));
        assert_eq!(world.ask(&answers, "a").await, Err("down".into()));
        assert_eq!(world.questions.get(), 1, "not at once again");
        sleep(PAUSE).await;
        world.says(Ok([1].into()));
        assert_eq!(world.ask(&answers, "a").await, Ok(vec![1]));
        world.says(down());
        sleep(Duration::from_secs(1800)).await;
        assert_eq!(world.ask(&answers, "a").await, Ok(vec![1]));
        sleep(Duration::from_secs(1800)).await;
        assert_eq!(world.ask(&answers, "a").await, Err("down".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_gone_is_gone_unless_it_is_to_be_kept() {
        for (when_gone, expected) in
            [(WhenGone::Forget, Err(Unanswered::Gone.to_string())), (WhenGone::Keep, Ok(vec![1]))]
        {
            let (world, answers) = (World::default(), Answers::new(Terms { when_gone, ..TERMS }));
            world.says(Ok([1].into()));
            world.ask(&answers, "a").await.unwrap();
            sleep(TERMS.fresh + TERMS.overlap).await;
            world.says(Err(Unanswered::Gone));
            assert_eq!(world.ask(&answers, "a").await, expected);
            assert_eq!(world.ask(&answers, "a").await, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn questions_do_not_pile_up() {
        let (world, answers) = (World::default(), Answers::new(TERMS));
        world.says(down());
        for number in 0..2 * MOST_KEPT {
            let _ = world.ask(&answers, &format!("name-{number}")).await;
        }
        assert!(answers.kept.borrow().len() <= MOST_KEPT);
    }
}
